-- steps.lua - the steps of a call, one after the other.

local carry_out

do

-- Steps that only look.
local READS = { G = true, I = true, F = true, O = true, Z = true, K = true, V = true, W = true, h = true,
                u = true }

-- The part of a take's answer that is kept: how many each worker got, and the jobs: first id, how
-- many, delivery.
local function to_remember(letter, answer)
  if READS[letter] then return false end
  if letter ~= 'T' and letter ~= 't' then return answer end
  local given = { answer[1] }
  for k = 2, #answer, 3 do
    local specs = answer[k + 2]
    given[k] = sunpack('>I8', answer[k])
    given[k + 1] = type(specs) == 'table' and layout.jobs_given(specs) or 1
    given[k + 2] = sunpack('>I4', answer[k + 1], RUN_DELIVERY)
  end
  return given
end

-- `before`: what the same call has answered, if it was made before. Returns the answers, and what
-- to remember of them.
function carry_out(before)
  local answers, memory, total, i, n_args = { now, '' }, {}, 0, FIRST_STEP, #ARGV
  while i <= n_args do
    local letter, n = ARGV[i], tonumber(ARGV[i + 1])
    local answer
    total = total + 1
    if before and not READS[letter] then
      answer = before[total]
      if letter == 'T' or letter == 't' then answer = layout.taken_before(answer) end
    else
      layout.before_step(letter)
      answer = steps[letter](i + 2, n)
      if number then memory[total] = to_remember(letter, answer) end
    end
    answers[total + 2] = answer
    if answer == 'words' then break end      -- the rest waits, so that the order is kept
    i = i + 2 + n
  end
  return answers, memory
end

end
