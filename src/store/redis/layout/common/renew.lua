-- renew.lua - the step N.

function steps.N(i, n)
  local answer = {}
  for k = i, i + n - 1, 3 do
    local till = now + tonumber(ARGV[k + 2])
    local is_held = layout.renew(ARGV[k], ARGV[k + 1], till)
    if is_held then want(till) end
    answer[#answer + 1] = is_held and 1 or 0
  end
  return answer
end
