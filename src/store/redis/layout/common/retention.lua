-- retention.lua - finished jobs that are not to be kept any longer.

-- Remove up to `limit` of the types with these names, and note when the next one goes.
function layout.sweep(names, limit)
  local removed, next_at = 0, huge
  table.sort(names)
  for _, name in ipairs(names) do
    for state = COMPLETE, CANCELLED do
      local n, at = 0, huge
      if name ~= '*' then n, at = layout.sweep_some(name, state, limit - removed) end
      removed = removed + n
      if at < next_at then next_at = at end
    end
  end
  keep_at = next_at
  return removed
end
