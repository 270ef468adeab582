-- words.lua - what jobs are found by. FOUND has, for a job that is searched, the words of its data
-- and the words of its error and log.

local note_words, forget_words

do

-- `which`: 1 in the place of the words of its data; 2 more of its error and log.
function note_words(id, which, words)
  local r = call('HGET', layout.key(FOUND), id)
  local found = r and unpack_msg(r) or { {}, {} }
  local there = {}
  for _, w in ipairs(found[2]) do there[w] = true end
  if which == 1 then
    for _, w in ipairs(words) do there[w] = true end
    for _, w in ipairs(found[1]) do
      if not there[w] then layout.mark(WORDS, layout.word(w, id), false) end
    end
    found[1] = words
  else
    for _, w in ipairs(words) do
      if not there[w] then
        there[w] = true
        found[2][#found[2] + 1] = w
      end
    end
  end
  for _, w in ipairs(words) do layout.mark(WORDS, layout.word(w, id), 0) end
  call('HSET', layout.key(FOUND), id, pack(found))
end

function forget_words(id)
  local r = call('HGET', layout.key(FOUND), id)
  if not r then return end
  for _, words in ipairs(unpack_msg(r)) do
    for _, w in ipairs(words) do layout.mark(WORDS, layout.word(w, id), false) end
  end
  call('HDEL', layout.key(FOUND), id)
end

end
