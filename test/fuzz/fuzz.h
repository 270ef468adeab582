/* fuzz.h - what every fuzz target defines: one function that is given bytes and must not crash.
 * libFuzzer calls it with bytes it makes up, replay.c with those of files. */
#ifndef WEIR_TEST_FUZZ_H
#define WEIR_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(): it must also hold in builds without. */
#define MUST(condition)                                                                   \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);     \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

#endif
