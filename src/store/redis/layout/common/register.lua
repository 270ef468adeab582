-- register.lua - the two names of the function: see redis_layout.

redis.register_function(NAME .. '_add', run_steps)
redis.register_function{ function_name = NAME .. '_rest', callback = run_steps,
                         flags = { 'allow-oom' } }
