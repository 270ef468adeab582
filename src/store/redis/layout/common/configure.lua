-- configure.lua - the step C.

function steps.C(i)
  local name, paused, settings = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local t = layout.make_type(name)
  types_dirty[name] = true
  if settings ~= '' then
    for k, v in ipairs(unpack_msg(settings)) do t[T_HAS_SETTINGS + k] = v end
    t[T_HAS_SETTINGS] = 1
    layout.new_settings(t)
    keep_at = AT_ONCE              -- what is kept too long now goes with the next TICK
    want(AT_ONCE)
  end
  if paused ~= '' and tonumber(paused) ~= t[T_PAUSED] then
    t[T_PAUSED] = tonumber(paused)
    layout.emit_of_type(t[T_PAUSED] == 1 and EVENT_PAUSE or EVENT_RESUME, name)
  end
  return 1
end
