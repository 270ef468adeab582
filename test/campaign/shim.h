/* shim.h - what the campaign can do to a process from outside, without rights over the machine: a
 * page that is shared with every process which was started under the shim (LD_PRELOAD). */
#ifndef WEIR_TEST_SHIM_H
#define WEIR_TEST_SHIM_H

#include <stdatomic.h>

#define SHIM_PAGE_ENV "WEIR_FAULT_PAGE"     /* names the file of the page */

typedef struct shim_page {
    _Atomic int clock_step_s;   /* the wall clock is this much ahead of the machine's */
    _Atomic int disk_full;      /* no file of the store gets longer, nor beyond this many bytes:
                                   ENOSPC; 0: there is room */
} shim_page;

#endif
