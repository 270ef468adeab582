/* kue_client.h - what the tests of Kue's and Vert.x Kue's APIs share: a request whose answer must
 * be exactly this, and a worker. */
#ifndef WEIR_TEST_KUE_CLIENT_H
#define WEIR_TEST_KUE_CLIENT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/access/tokens.h"
#include "support/server_rig.h"
#include "weir/remote.h"

/* Where the clock of the tests starts. */
#define T0 "1700000000000"

/* The body must be `want`, byte for byte; if it ends with "...", it must start so. */
static inline void ask_with(web *w, const char *headers, const char *method, const char *target,
                            const char *body, int status, const char *want)
{
    web_answer a = web_call_with(w, method, target, headers, body);
    size_t     len = strlen(want);
    bool       part = len >= 3 && !strcmp(want + len - 3, "...");
    if (a.status != status || (part ? strncmp(a.body, want, len - 3) : strcmp(a.body, want)))
        fail_msg("%s %s: %d %s\n  not: %d %s", method, target, a.status, a.body, status, want);
    web_free(&a);
}

static inline void ask(web *w, const char *method, const char *target, const char *body, int status,
                       const char *want)
{
    ask_with(w, NULL, method, target, body, status, want);
}

/* The header of a caller with a new token in `file`; `type` "": for all types. */
static inline const char *token_header(char header[128], const char *file, const char *name,
                                       const char *roles, const char *type)
{
    srv_caller who = { 0 };
    weir_error err;
    char       text[SRV_TOKEN_TEXT];
    assert_true(srv_roles_parse(roles, &who.roles));
    snprintf(who.name, sizeof who.name, "%s", name);
    snprintf(who.types, sizeof who.types, "%s", type);
    if (srv_tokens_add(file, &who, 1, text, &err))
        fail_msg("%s", err.msg);
    snprintf(header, 128, "Authorization: Bearer %s\r\n", text);
    return header;
}

/* Take the next job of a type, which must be this one. */
static inline weir_job *take(web *w, const char *type, uint64_t id)
{
    rt         *t = &w->t;
    weir_job   *job = NULL;
    size_t      n = 0;
    weir_taking what = {
        .remote = true, .types = (const char *[]){ type, NULL }, .n = 1, .worker = "me"
    };
    OK(weir_take(t->q, &what, &job, &n, &t->err));
    assert_int_equal(n, 1);
    assert_int_equal(job->id, id);
    return job;
}

static inline void end(web *w, weir_job *job, weir_outcome outcome, const char *text)
{
    rt         *t = &w->t;
    weir_ended  ended;
    weir_ending e = { .id = job->id, .delivery = job->delivery, .outcome = outcome, .text = text };
    OK(weir_finish(t->q, &e, 1, &ended, &t->err));
    assert_int_equal(ended.err.code, WEIR_OK);
    weir_job_free(job);
}

#endif
