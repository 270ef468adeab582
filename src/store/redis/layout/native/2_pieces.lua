-- 2_pieces.lua - where specs are: in JOBS.
--
-- Jobs that are added together and are alike have theirs in pieces: a field for PIECE jobs whose
-- ids follow each other (the last one of a call may have fewer), "p" and the first id. It begins
-- with the number of its places, 1 byte, and the length of each spec, 2 bytes; then come the specs.
-- A piece is written once. Which of its jobs are gone, or have a spec of their own by now, says a
-- field "g" and the first id: a number, bit 0 for the first place. With the last job both go.
--
-- All others, and those whose spec or run was put anew (they have failed, say), have a field of
-- their own, the id. So what stays for long does not keep the piece of those it was added with.

local function id_bytes(number_or_text)
  return spack('>I8', tonumber(number_or_text))
end

local function id_number(id)
  return (sunpack('>I8', id))
end

local function piece_field(first)
  return 'p' .. spack('>I8', first)
end

local created_now, specs_of, spec_of, set_spec, pieces_from, leave_where, jobs_in_field
local jobs_given

do

local function gone_field(first)
  return 'g' .. spack('>I8', first)
end

-- Where the spec at a place begins, and where it ends.
local function bounds(piece, place)
  local at = 2 + 2 * byte(piece)
  for k = 1, place - 1 do at = at + sunpack('>I2', piece, 2 * k) end
  return at, at + sunpack('>I2', piece, 2 * place) - 1
end

-- Another program may have damaged it.
local function is_piece(text)
  local n = byte(text) or 0
  if n == 0 or n > PIECE or #text < 1 + 2 * n then return false end
  local _, to = bounds(text, n)
  return to == #text
end

local function spec_at(piece, place)
  return sub(piece, bounds(piece, place))
end

-- A new piece, with `now` as created_at.
function created_now(piece)
  local specs = {}
  for place = 1, byte(piece) do specs[place] = now7 .. sub(spec_at(piece, place), 8) end
  return sub(piece, 1, 1 + 2 * #specs) .. concat(specs)
end

-- ---- by id ----

local function is_gone(bits, place)
  return bits and floor(bits / 2 ^ (place - 1)) % 2 == 1
end

-- The pieces that may have these jobs (numbers), and of those that are there what is gone: each by
-- the first id.
local function pieces_around(ids)
  local pieces, bits, fields, firsts_asked = {}, {}, {}, {}
  for k = 1, #ids do
    for back = 0, PIECE - 1 do
      local first = ids[k] - back * partitions
      if pieces[first] == nil and first > 0 then
        pieces[first], fields[#fields + 1] = false, piece_field(first)
        firsts_asked[#fields] = first
      end
    end
  end
  local got, there = get_many(JOBS, fields), {}
  fields = {}
  for k = 1, #got do
    if got[k] and is_piece(got[k]) then
      pieces[firsts_asked[k]], fields[#fields + 1] = got[k], gone_field(firsts_asked[k])
      there[#fields] = firsts_asked[k]
    end
  end
  got = get_many(JOBS, fields)
  for k = 1, #got do bits[there[k]] = got[k] end
  return pieces, bits
end

-- Call found(k, piece, first id, place) for each of these jobs (numbers) that is in a piece.
local function find(ids, found)
  local pieces, bits = pieces_around(ids)
  for k = 1, #ids do
    local first, place = ids[k], 1
    while not pieces[first] and place <= PIECE do first, place = first - partitions, place + 1 end
    local piece = pieces[first]
    if piece and place <= byte(piece) and not is_gone(bits[first], place) then
      found(k, piece, first, place)
    end
  end
end

-- The spec of each, or false.
function specs_of(ids)
  local specs, missing, at = get_many(JOBS, ids), {}, {}
  for k = 1, #ids do
    if not specs[k] then missing[#missing + 1], at[#missing + 1] = id_number(ids[k]), k end
  end
  if #missing > 0 then
    find(missing, function(k, piece, _, place) specs[at[k]] = spec_at(piece, place) end)
  end
  return specs
end

function spec_of(id)
  return specs_of({ id })[1]
end

-- ---- gone ----

-- n jobs of a piece, from this place on, have left it: flush_pieces() writes it.
local function leave_piece(first, place, n, places)
  gone_bits[first] = (gone_bits[first] or 0) + 2 ^ (place - 1) * (2 ^ n - 1)
  all_bits[first] = 2 ^ places - 1
end

function flush_pieces()
  for first, bits in pairs(gone_bits) do
    local all = all_bits[first]
    if bits ~= all then bits = call('HINCRBY', KEYS[JOBS], gone_field(first), digits(bits)) end
    if bits == all then call('HDEL', KEYS[JOBS], piece_field(first), gone_field(first)) end
  end
  gone_bits, all_bits = clear(gone_bits), clear(all_bits)
end

local function leave_pieces(ids)
  local numbers = {}
  for k = 1, #ids do numbers[k] = id_number(ids[k]) end
  find(numbers, function(_, piece, first, place) leave_piece(first, place, 1, byte(piece)) end)
  flush_pieces()
end

function drop_specs(ids)
  local n = 0
  for k = 1, #ids, MANY do
    n = n + call('HDEL', KEYS[JOBS], unpack(ids, k, min(k + MANY - 1, #ids)))
  end
  if n < #ids then leave_pieces(ids) end
end

-- The job has this spec, in a field of its own, from now on.
function set_spec(id, spec)
  if call('HSET', KEYS[JOBS], id, spec) == 1 then leave_pieces({ id }) end
end

-- ---- for callers that have the place of a job in its piece ----

-- Some places of a piece, as a piece.
local function part_of(piece, place, n)
  local from = bounds(piece, place)
  local _, to = bounds(piece, place + n - 1)
  return BYTE[n] .. sub(piece, 2 * place, 2 * (place + n) - 1) .. sub(piece, from, to)
end

-- n jobs from this id on that were added together, the first of which has this place: the names of
-- their pieces follow from that. Answers [how many, how many places of the first piece to skip, the
-- pieces], and where they are, for each piece how many of them, the place of the first, and how
-- many places it has. nil: one of them is missing.
function pieces_from(id, place, n)
  local fields, first = {}, id - (place - 1) * partitions
  for k = 0, ceil((place - 1 + n) / PIECE) - 1 do
    fields[k + 1] = piece_field(first + k * PIECE * partitions)
  end
  local pieces, where, w, skip, left = get_many(JOBS, fields), {}, 0, place - 1, n
  for k = 1, #fields do
    local places, some = pieces[k] and byte(pieces[k]) or 0, min(left, PIECE - place + 1)
    if places < place + some - 1 then return nil end
    where[w + 1], where[w + 2], where[w + 3], w = some, place, places, w + 3
    place, left = 1, left - some
  end
  if #fields == 1 and 2 * n <= where[3] then
    return { n, 0, part_of(pieces[1], skip + 1, n) }, where
  end
  return { n, skip, unpack(pieces) }, where
end

-- How many jobs there are in what a take gives: [spec ...], or what pieces_from() answers.
function jobs_given(specs)
  return type(specs[1]) == 'number' and specs[1] or #specs
end

layout.jobs_given = jobs_given

-- n jobs of a grant, from that place in it on, are gone: see read_grants() for `where`. Its first job
-- has the id `first`.
function leave_where(where, first, place, n)
  local id, k, before = first + (place - 1) * partitions, 1, place - 1
  while before >= where[k] do before, k = before - where[k], k + 3 end
  while n > 0 do
    local some, its_place = min(n, where[k] - before), where[k + 1] + before
    if where[k + 1] == 0 then
      for m = 0, some - 1 do gone_jobs[n_gone_jobs + 1 + m] = spack('>I8', id + m * partitions) end
      n_gone_jobs = n_gone_jobs + some
    else
      leave_piece(id - (its_place - 1) * partitions, its_place, some, where[k + 2])
    end
    id, n, before, k = id + some * partitions, n - some, 0, k + 3
  end
end

-- ---- of those who walk the fields of JOBS ----

-- The ids of the jobs in a field. A field "g" has none; false: it has no piece, or the piece has no
-- job any more; nil: it cannot be read.
function jobs_in_field(field)
  if #field == 8 then return { field } end
  if #field ~= 9 or not match(field, '^[pg]') then return nil end
  local first, ids = sunpack('>I8', field, 2), {}
  local piece, bits = unpack(get_many(JOBS, { piece_field(first), gone_field(first) }))
  if piece and not is_piece(piece) then return nil end
  if byte(field) == 103 then return (piece or not bits) and ids end    -- g; both may be gone by now
  for place = 1, piece and byte(piece) or 0 do
    if not is_gone(bits, place) then
      ids[#ids + 1] = spack('>I8', first + (place - 1) * partitions)
    end
  end
  return (#ids > 0 or not piece) and ids
end

end
