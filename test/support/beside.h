/* beside.h - files of the build directory, for programs of tests. */
#ifndef WEIR_TEST_BESIDE_H
#define WEIR_TEST_BESIDE_H

#include <limits.h>

/* The path of a file `up` folders above this program's own, as "src/cli/weir". Answers `path`. */
const char *beside(const char *name, int up, char path[PATH_MAX]);

#endif
