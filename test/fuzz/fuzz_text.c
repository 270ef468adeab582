/* fuzz_text.c - the parsers of small texts. The first byte picks one, the rest is the text. */
#include <string.h>

#include "base/json.h"
#include "core/search.h"
#include "fuzz/fuzz.h"
#include "support/quiet_env.h"
#include "weir/weir.h"

static void check_failed(weir_code rc, const weir_error *err)
{
    MUST(rc == WEIR_EINVAL || rc == WEIR_ELIMIT);
    MUST(err->code == rc && err->msg[0] && strlen(err->msg) < WEIR_ERROR_MAX);
    for (const char *s = err->msg; *s; s++)
        MUST((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void duration(const char *text)
{
    weir_error err;
    int64_t    ms;
    weir_code  rc = weir_duration_parse(text, &ms, &err);
    if (rc)
        check_failed(rc, &err);
    MUST(ms >= 0 && ms <= WEIR_MAX_MS);
}

static void backoff(const char *text)
{
    weir_error   err;
    weir_backoff b;
    weir_code    rc = weir_backoff_parse(text, &b, &err);
    if (rc)
        check_failed(rc, &err);
    MUST(b.kind >= WEIR_BACKOFF_NONE && b.kind <= WEIR_BACKOFF_LINEAR);
    MUST(b.delay_ms >= 0 && b.delay_ms <= WEIR_MAX_MS && b.max_ms >= 0 && b.max_ms <= WEIR_MAX_MS);
    MUST(b.jitter_pct >= 0 && b.jitter_pct <= 100);
}

/* What has a name must be found under it again. */
static void names(const char *text)
{
    int32_t         n;
    weir_state      s;
    weir_event_kind k;
    if (weir_priority_parse(text, &n) && weir_priority_name(n)) {
        int32_t again = n + 1;
        MUST(weir_priority_parse(weir_priority_name(n), &again) && again == n);
    }
    if (weir_state_parse(text, &s))
        MUST(s > WEIR_STATE_ANY && s < WEIR_STATE_COUNT &&
             strlen(weir_state_name(s)) == strlen(text));
    if (weir_event_parse(text, &k))
        MUST(strlen(weir_event_name(k)) == strlen(text));
}

/* Only what opens no file and calls nobody: not sqlite:, not redis..., but mem: with any query. */
static void open_url(const char *url)
{
    weir_env    env = QUIET_ENV("fuzz");
    weir_error  err;
    weir_store *s;
    weir_code   rc = weir__store_open(&s, url, &env, &err);
    MUST(!rc == !!s);
    if (rc)
        check_failed(rc, &err);
    else
        s->ops->close(s);
}

/* Scheme, rest and options are the whole text. */
static void parse_url(const char *text)
{
    weir_error err;
    weir_url   u;
    weir_code  rc = weir__url_parse(text, &u, &err);
    if (rc) {
        check_failed(rc, &err);
        return;
    }
    size_t scheme = strlen(u.scheme), rest = strlen(u.rest);
    MUST(!strncmp(text, u.scheme, scheme) && text[scheme] == ':');
    MUST(!strncmp(text + scheme + 1, u.rest, rest) && !strchr(u.rest, '?'));
    MUST(!text[scheme + 1 + rest] || text[scheme + 1 + rest] == '?');
    MUST(!u.durability || strstr(text, "durability="));
    for (size_t i = 0; i < u.n_options; i++)
        MUST(weir__url_option(&u, u.option[i].name) == u.option[i].value);
}

static void url(const char *text)
{
    parse_url(text);
    if (strncmp(text, "sqlite:", 7) && strncmp(text, "redis", 5))
        open_url(text);
    size_t len = strlen(text);
    char  *query = malloc(len + 6);
    MUST(query);
    memcpy(query, "mem:?", 5);
    memcpy(query + 5, text, len + 1);
    open_url(query);
    free(query);
}

/* Up to a line break the query, behind it the text; and the text as JSON. */
static void search(const char *text)
{
    const char *line = strchr(text, '\n');
    const char *rest = line ? line + 1 : text;
    size_t      len = strlen(rest), n = line ? (size_t)(line - text) : strlen(text);
    char       *query = strndup(text, n);
    MUST(query);
    size_t pos = 0, word, word_len, words = 0;
    while (weir__search_word(query, n, &pos, &word, &word_len)) {
        MUST(word_len && word + word_len == pos && pos <= n);
        words++;
    }
    MUST(weir__search_match(query, query, n) == (words > 0));    /* everything finds itself */
    MUST(words || !weir__search_match(query, rest, len));
    if (weir__json_valid(rest, len, WEIR_MAX_DEPTH, NULL, NULL)) {
        weir_buf b = { 0 };
        MUST(weir__search_text(&b, rest, len, NULL));
        weir__buf_clear(&b);
        MUST(weir__search_text(&b, rest, len, query));
        weir__buf_fini(&b);
    }
    free(query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(const char *text) = { duration, backoff, names, url, search };
    if (!size)
        return 0;
    char *text = strndup((const char *)data + 1, size - 1);
    MUST(text);
    parsers[data[0] % (sizeof parsers / sizeof *parsers)](text);
    free(text);
    return 0;
}
