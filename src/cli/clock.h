/* clock.h - the two clocks that commands read. The program sees public headers and some of the
 * server's, so it cannot use the library's base/clock.h. Any thread. */
#ifndef WEIR_CLI_CLOCK_H
#define WEIR_CLI_CLOCK_H

#include <stdint.h>

int64_t cli_clock_ms(void);      /* monotonic: it starts anywhere, and nobody sets it */
int64_t cli_wall_ms(void);       /* since 1970 */

#endif
