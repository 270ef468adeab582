-- ends.lua - the steps T and t; the answers of both layouts to the steps D and T, and to the steps
-- that list.

-- `runs`: of jobs with the same answer how many, and the state they have now or -1, m values in all.
-- Answers one for all or one for each, and notes in `worked` which ends did.
local function answer_of_ends(runs, m)
  if m == 2 then
    worked = runs[2] >= 0
    return runs[2]
  end
  local answer = {}
  worked = {}
  for k = 1, m, 2 do
    for place = #answer + 1, #answer + runs[k] do
      answer[place], worked[place] = runs[k + 1], runs[k + 1] >= 0
    end
  end
  return answer
end

function steps.T(i, n)
  return layout.take(i, n, true)
end

function steps.t(i, n)
  return layout.take(i, n, worked)
end

-- Mark the first take that passed over a suspect, and the takes behind it: they pass over it, too.
-- The takes before it had enough jobs before they came to one.
function layout.mark_passed(d)
  for k = d.passer, #d.got do
    if d.wants[k] > 0 then d.got[k] = d.got[k] + PASSED end
  end
end

-- The answer of who has looked at enough jobs, up to this place.
function layout.stopped_at(answer, rank, id)
  local n = #answer
  answer[n + 1], answer[n + 2] = rank, id
  return answer
end
