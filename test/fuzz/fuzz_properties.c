/* fuzz_properties.c - a file of Java properties: what is read can be a prefix and a name. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "task/properties.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_task_properties p;
    weir_error           err = { 0 };
    weir_code            rc = weir__properties_parse(&p, (const char *)data, size, &err);
    MUST(memchr(p.queue_key, 0, sizeof p.queue_key) && memchr(p.table, 0, sizeof p.table));
    MUST(!strpbrk(p.queue_key, " ?&#%\n") && !strpbrk(p.table, " ?&;'\"\n"));
    if (rc)
        MUST(rc == WEIR_EINVAL && strstr(err.msg, "properties, line ") && !*p.table);
    return 0;
}
