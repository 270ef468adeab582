/* conformance.h - one suite for every store: tables of cases, each a function over a fixture. */
#ifndef WEIR_TEST_CONFORMANCE_H
#define WEIR_TEST_CONFORMANCE_H

#include "support/store_fixture.h"

typedef struct conformance_case {
    const char *name;
    void      (*run)(fixture *f);
    bool        persistent;         /* only for stores that can be closed and opened again */
} conformance_case;

#define CASE(function)            { #function, function, false }
#define PERSISTENT_CASE(function) { #function, function, true }

/* Each ends with {0}. */
#define CASE_TABLES(X) X(add) X(take) X(finish) X(time) X(hand) X(list) X(log) X(type) X(event) \
    X(input) X(reopen)
#define X(name) extern const conformance_case cases_##name[];
CASE_TABLES(X)
#undef X

#endif
