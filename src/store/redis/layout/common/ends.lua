-- ends.lua - what both layouts answer to the step D.

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
