/* same_job.h - are two jobs the same, in every member? */
#ifndef WEIR_TEST_SAME_JOB_H
#define WEIR_TEST_SAME_JOB_H

#include "weir/job.h"

/* Asserts it; `is` is one that the library gave away. */
void check_same_job(const weir_job *is, const weir_job *want);

#endif
