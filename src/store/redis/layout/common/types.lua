-- types.lua - records of types: see layout.h.

-- The record of a type, which is made when it is new.
function layout.make_type(name)
  local t = type_of(name)
  if not t then
    t = layout.new_type()
    types[name], types_dirty[name] = t, true
  end
  return t
end
