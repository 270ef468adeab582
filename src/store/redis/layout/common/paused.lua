-- paused.lua - may jobs of a type be taken?

function layout.is_paused(name)
  local t, all = type_of(name), type_of('*')
  return t and t[T_PAUSED] == 1 or all and all[T_PAUSED] == 1
end
