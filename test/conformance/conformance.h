/* conformance.h - one suite for every store: tables of cases, each a function over a fixture. */
#ifndef WEIR_TEST_CONFORMANCE_H
#define WEIR_TEST_CONFORMANCE_H

#include "support/store_fixture.h"

/* Which stores a case is for: all; those that can be closed and opened again; of these, those that
 * belong to one process, and those that several share; those whose time is that of a process. */
typedef enum case_for { FOR_ALL, FOR_PERSISTENT, FOR_OWNED, FOR_SHARED, FOR_STEADY } case_for;

typedef struct conformance_case {
    const char *name;
    void      (*run)(fixture *f);
    case_for    who;
    bool        ordered;        /* needs ids in a row or one order over all: no partitions */
} conformance_case;

#define CASE(function)            { #function, function, FOR_ALL, false }
#define ORDERED_CASE(function)    { #function, function, FOR_ALL, true }
#define PERSISTENT_CASE(function) { #function, function, FOR_PERSISTENT, false }
#define OWNED_CASE(function)      { #function, function, FOR_OWNED, false }
#define SHARED_CASE(function)     { #function, function, FOR_SHARED, false }
#define STEADY_CASE(function)     { #function, function, FOR_STEADY, false }

/* Each ends with {0}. */
#define CASE_TABLES(X)                                                                            \
    X(add) X(token) X(take) X(suspect) X(lot) X(finish) X(time) X(clock) X(hand) X(list) X(log)   \
    X(type) X(event) X(input) X(import) X(history) X(values) X(reopen) X(schedule)  \
    X(repeat) X(trend)
#define X(name) extern const conformance_case cases_##name[];
CASE_TABLES(X)
#undef X

#endif
