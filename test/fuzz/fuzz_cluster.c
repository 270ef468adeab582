/* fuzz_cluster.c - frames between the processes of one bus: what is read can be written, and is the
 * same then. */
#include <string.h>

#include "bus/cluster_frame.h"
#include "fuzz/fuzz.h"

static void write_whole(weir_buf *out, const bus_frame *f)
{
    bus_frame left = *f;
    bus_entry e;
    weir__frame_write(out, f);
    while (weir__frame_next_entry(&left, &e))
        weir__frame_write_entry(out, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bus_frame f, again;
    weir_buf  out = { 0 }, twice = { 0 };
    if (!weir__frame_read((const char *)data, size, &f))
        return 0;
    MUST(f.kind > 0 && f.kind < FRAME_KINDS && strlen(f.from) == WEIR_PROCESS - 1);
    write_whole(&out, &f);
    MUST(out.len == size);
    MUST(weir__frame_read(out.data, out.len, &again));
    write_whole(&twice, &again);
    MUST(twice.len == out.len && !memcmp(twice.data, out.data, out.len));
    weir__buf_fini(&out);
    weir__buf_fini(&twice);
    return 0;
}
