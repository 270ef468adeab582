/* certs.h - certificates for tests: a CA of the folder's own, and what it signs. */
#ifndef WEIR_TEST_CERTS_H
#define WEIR_TEST_CERTS_H

#include <stdbool.h>

/* Write DIR/NAME.pem and DIR/NAME.key, signed by DIR/ca.pem, which is made first if it is missing.
 * `names`: whom it is for, "IP:127.0.0.1,DNS:localhost". False: it could not be done. */
bool certs_make(const char *dir, const char *name, const char *names, bool expired);

#endif
