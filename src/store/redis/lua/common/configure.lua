-- configure.lua - the step C.

function steps.C(i)
  local name, paused, settings = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local t = type_make(name)
  types_dirty[name] = true
  if settings ~= '' then
    for k, v in ipairs(unpack_msg(settings)) do t[OWN + k] = v end
    t[OWN] = 1
    layout.new_settings(t)
    keep_at = AT_ONCE              -- what is kept too long now goes with the next TICK
    want(AT_ONCE)
  end
  if paused ~= '' and tonumber(paused) ~= t[PAUSED] then
    t[PAUSED] = tonumber(paused)
    layout.tell_of_type(t[PAUSED] == 1 and PAUSE or RESUME, name)
  end
  return 1
end
