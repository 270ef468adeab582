/* condition.c - parses conditions and asks them: see condition.h for the grammar.
 *
 * A condition is a list of parts, each a comparison or a word between others, which name their
 * sides by index: so there is nothing to free but one block. */
#include "core/condition.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "core/civil.h"
#include "core/job.h"
#include "weir/data.h"

enum { MAX_NODES = 4 * WEIR_MAX_CONDITION_PARTS, MINUTE_MS = 60000 };

typedef enum value_kind { IS_NULL, IS_BOOL, IS_NUMBER, IS_TEXT } value_kind;

typedef struct value {
    value_kind  kind;
    double      number;             /* also of a bool: 0 or 1 */
    const char *text;
} value;

typedef enum source { FROM_TEXT, FROM_DATA, FROM_VALUES, FROM_NOW, FROM_JOB } source;

typedef enum now_field { YEAR, MONTH, DAY, WEEKDAY, HOUR, MINUTE, NOW_FIELDS } now_field;
static const char *const now_names[] = { "year", "month", "day", "weekday", "hour", "minute" };

typedef enum job_field { ID, TYPE, PRIORITY, ATTEMPTS, JOB_FIELDS } job_field;
static const char *const job_names[] = { "id", "type", "priority", "attempts" };

/* One side of a comparison. */
typedef struct operand {
    source      from;
    value       literal;            /* FROM_TEXT */
    const char *path;               /* FROM_DATA, FROM_VALUES */
    int         field;              /* FROM_NOW, FROM_JOB */
} operand;

typedef enum compare { EQ, NE, LE, GE, LT, GT, ALONE } compare;
static const char *const compares[] = { "=", "!=", "<=", ">=", "<", ">" };

typedef enum node_kind { OR, AND, NOT, COMPARE } node_kind;

typedef struct node {
    node_kind kind;
    compare   how;
    int       a, b;                 /* nodes; of COMPARE: operands (b unused when ALONE) */
} node;

struct weir_condition {
    node    node[MAX_NODES];
    operand operand[2 * WEIR_MAX_CONDITION_PARTS];
    int     n_nodes, n_operands, top;
    int64_t step_ms;                /* how often the clock can change it; 0: never */
    int     steps;                  /* how many are looked at */
    char    text[WEIR_MAX_CONDITION + 1];       /* of paths and texts */
    size_t  n_text;
};

/* ---- parsing ---- */

typedef struct parser {
    weir_condition *c;
    const char     *start, *at;
    int             depth;
    weir_code       rc;
    weir_error     *err;
} parser;

static void skip_space(parser *p)
{
    while (*p->at && strchr(" \t\r\n", *p->at))
        p->at++;
}

/* The first error counts. Returns -1, which is no node. */
static int wrong(parser *p, weir_code code, const char *what)
{
    if (!p->rc)
        p->rc = weir__fail_field(p->err, code, "when", "column %zu: %s, found \"%.20s\"",
                                 (size_t)(p->at - p->start) + 1, what, p->at);
    return -1;
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool take_word(parser *p, const char *word)
{
    size_t len = strlen(word);
    skip_space(p);
    if (strncmp(p->at, word, len) != 0 || is_word_char(p->at[len]))
        return false;
    p->at += len;
    return true;
}

static bool take_sign(parser *p, const char *sign)
{
    size_t len = strlen(sign);
    skip_space(p);
    if (strncmp(p->at, sign, len) != 0)
        return false;
    p->at += len;
    return true;
}

static int add_node(parser *p, node n)
{
    if (p->rc)
        return -1;
    if (p->c->n_nodes == MAX_NODES)
        return wrong(p, WEIR_ELIMIT, "too many parts");
    p->c->node[p->c->n_nodes] = n;
    return p->c->n_nodes++;
}

/* Room in the condition for a text that is no longer than what was read. */
static const char *keep(weir_condition *c, const char *text, size_t len)
{
    char *to = c->text + c->n_text;
    memcpy(to, text, len);
    to[len] = '\0';
    c->n_text += len + 1;
    return to;
}

/* "text", in which \" and \\ stand for themselves. */
static void read_text(parser *p, operand *o)
{
    char        text[WEIR_MAX_CONDITION];
    size_t      n = 0;
    const char *at = p->at + 1;
    while (*at && *at != '"') {
        if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        text[n++] = *at++;
    }
    if (!*at) {
        wrong(p, WEIR_EINVAL, "expected a closing quote");
        return;
    }
    p->at = at + 1;
    o->literal = (value){ IS_TEXT, .text = keep(p->c, text, n) };
}

/* A number of JSON: read as data is, whatever the locale. */
static void read_number(parser *p, operand *o)
{
    size_t   len = strspn(p->at, "+-.0123456789eE");
    weir_job job = { .data = p->at, .data_len = len };
    double   n = weir_json_valid(p->at, len) ? weir_data_number(&job, "", NAN) : NAN;
    if (!isfinite(n)) {
        wrong(p, WEIR_EINVAL, "expected a value: \"text\", a number, true, false, null, data.PATH, "
                              "values.NAME, now.FIELD or job.FIELD");
        return;
    }
    o->literal = (value){ IS_NUMBER, .number = n };
    p->at += len;
}

/* A path of data.h: up to a blank, a parenthesis or a sign, but for what is in brackets. */
static void read_path(parser *p, operand *o, source from)
{
    const char *at = p->at;
    bool        quoted = false;
    while (*at && (quoted || !strchr(" \t\r\n()=!<>", *at))) {
        quoted ^= *at == '"';
        at++;
    }
    if (at == p->at || quoted) {
        wrong(p, WEIR_EINVAL, "expected a name");
        return;
    }
    o->from = from;
    o->path = keep(p->c, p->at, (size_t)(at - p->at));
    size_t place = from == FROM_DATA ? weir__path_wrong(o->path) : SIZE_MAX;
    if (place != SIZE_MAX) {
        p->at += place;
        wrong(p, WEIR_EINVAL, "expected a path such as data.order.items[0].name");
        return;
    }
    p->at = at;
}

static void read_field(parser *p, operand *o, source from, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        if (take_word(p, names[i])) {
            o->from = from;
            o->field = i;
            return;
        }
    }
    wrong(p, WEIR_EINVAL, from == FROM_NOW
              ? "expected year, month, day, weekday, hour or minute"
              : "expected id, type, priority or attempts");
}

/* How often the clock changes what this reads. */
static void note_step(weir_condition *c, int field)
{
    enum { DAY_MINUTES = 1440, WEEK_HOURS = 168, YEAR_DAYS = 366 };
    int64_t step = field == MINUTE ? MINUTE_MS
                   : field == HOUR ? INT64_C(60) * MINUTE_MS
                                   : INT64_C(1440) * MINUTE_MS;
    if (c->step_ms && c->step_ms <= step)
        return;
    c->step_ms = step;
    c->steps = field == MINUTE ? DAY_MINUTES : field == HOUR ? WEEK_HOURS : YEAR_DAYS;
}

/* Returns the index of the operand. */
static int read_operand(parser *p)
{
    weir_condition *c = p->c;
    skip_space(p);
    if (c->n_operands == 2 * WEIR_MAX_CONDITION_PARTS)
        return wrong(p, WEIR_ELIMIT, "too many values");
    operand *o = &c->operand[c->n_operands];
    *o = (operand){ .from = FROM_TEXT };
    if (*p->at == '"') {
        read_text(p, o);
    } else if (take_word(p, "true")) {
        o->literal = (value){ IS_BOOL, .number = 1 };
    } else if (take_word(p, "false")) {
        o->literal = (value){ IS_BOOL, .number = 0 };
    } else if (take_word(p, "null")) {
        o->literal = (value){ IS_NULL, .number = 0 };
    } else if (take_sign(p, "data.")) {
        read_path(p, o, FROM_DATA);
    } else if (take_word(p, "data")) {
        o->from = FROM_DATA;                /* all of it, or an element of a list */
        o->path = "";
        if (*p->at == '[')
            read_path(p, o, FROM_DATA);
    } else if (take_sign(p, "values.")) {
        read_path(p, o, FROM_VALUES);
    } else if (take_sign(p, "now.")) {
        read_field(p, o, FROM_NOW, now_names, NOW_FIELDS);
        note_step(c, o->field);
    } else if (take_sign(p, "job.")) {
        read_field(p, o, FROM_JOB, job_names, JOB_FIELDS);
    } else {
        read_number(p, o);
    }
    return p->rc ? -1 : c->n_operands++;
}

static int read_compare(parser *p)
{
    node n = { .kind = COMPARE, .how = ALONE, .a = read_operand(p) };
    if (p->rc)
        return -1;
    for (int i = EQ; i < ALONE; i++) {
        if (take_sign(p, compares[i])) {
            n.how = (compare)i;
            n.b = read_operand(p);
            break;
        }
    }
    return add_node(p, n);
}

static int read_or(parser *p);

static int read_not(parser *p)
{
    int n;
    if (++p->depth > WEIR_MAX_CONDITION_DEPTH)
        return wrong(p, WEIR_ELIMIT, "too deep");
    if (take_word(p, "not")) {
        int inner = read_not(p);
        n = add_node(p, (node){ .kind = NOT, .a = inner });
    } else if (take_sign(p, "(")) {
        n = read_or(p);
        if (!p->rc && !take_sign(p, ")"))
            n = wrong(p, WEIR_EINVAL, "expected \")\"");
    } else {
        n = read_compare(p);
    }
    p->depth--;
    return n;
}

/* Parts of one kind with the same word between them. */
static int read_row(parser *p, node_kind kind, const char *word, int (*part)(parser *p))
{
    int n = part(p);
    while (!p->rc && take_word(p, word)) {
        int right = part(p);
        n = add_node(p, (node){ .kind = kind, .a = n, .b = right });
    }
    return n;
}

static int read_and(parser *p)
{
    return read_row(p, AND, "and", read_not);
}

static int read_or(parser *p)
{
    return read_row(p, OR, "or", read_and);
}

weir_code weir_condition_parse(weir_condition **out, const char *text, weir_error *err)
{
    *out = NULL;
    size_t len = strlen(text);
    if (len > WEIR_MAX_CONDITION)
        return weir__fail_field(err, WEIR_ELIMIT, "when", "%zu bytes, at most %d "
                                "(WEIR_MAX_CONDITION)", len, WEIR_MAX_CONDITION);
    weir_condition *c = calloc(1, sizeof *c);
    if (!c)
        return weir_fail(err, WEIR_ENOMEM, "condition: out of memory");
    parser p = { .c = c, .start = text, .at = text, .err = err };
    c->top = read_or(&p);
    skip_space(&p);
    if (!p.rc && *p.at)
        wrong(&p, WEIR_EINVAL, "expected and, or, or the end");
    if (p.rc) {
        free(c);
        return p.rc;
    }
    *out = c;
    return WEIR_OK;
}

void weir_condition_free(weir_condition *c)
{
    free(c);
}

/* ---- asking ---- */

static value from_data(weir_job *job, const operand *o)
{
    bool        data = o->from == FROM_DATA;
    const char *text = data ? weir_data_text(job, o->path, NULL)
                            : weir_value_text(job, o->path, NULL);
    if (text)
        return (value){ IS_TEXT, .text = text };
    double number = data ? weir_data_number(job, o->path, NAN)
                         : weir_value_number(job, o->path, NAN);
    if (!isnan(number))
        return (value){ IS_NUMBER, .number = number };
    bool no = data ? weir_data_bool(job, o->path, false) : weir_value_bool(job, o->path, false);
    bool yes = data ? weir_data_bool(job, o->path, true) : weir_value_bool(job, o->path, true);
    return no == yes ? (value){ IS_BOOL, .number = yes } : (value){ IS_NULL, .number = 0 };
}

static value from_job(const weir_job *job, int field)
{
    switch (field) {
    case ID:       return (value){ IS_NUMBER, .number = (double)job->id };
    case PRIORITY: return (value){ IS_NUMBER, .number = job->priority };
    case ATTEMPTS: return (value){ IS_NUMBER, .number = job->attempts };
    default:       return (value){ IS_TEXT, .text = job->type };
    }
}

static value from_now(int64_t now_ms, int field)
{
    int64_t   minutes = now_ms / MINUTE_MS, days = minutes / 1440;
    weir_date date = weir__date_of(days);
    int       n = 0;
    switch (field) {
    case YEAR:    n = date.year; break;
    case MONTH:   n = date.month; break;
    case DAY:     n = date.day; break;
    case WEEKDAY: n = (int)((days + 3) % 7) + 1; break;         /* 1970-01-01 was a Thursday */
    case HOUR:    n = (int)(minutes / 60 % 24); break;
    default:      n = (int)(minutes % 60); break;
    }
    return (value){ IS_NUMBER, .number = n };
}

/* Compare two values; texts by their bytes. Others than numbers and texts are only equal or not. */
static bool holds(value a, compare how, value b)
{
    if (how == ALONE)
        return a.kind == IS_BOOL && a.number != 0;
    bool ordered = a.kind == b.kind && (a.kind == IS_NUMBER || a.kind == IS_TEXT);
    int  order = a.kind != b.kind                      ? 1
                 : a.kind == IS_TEXT                   ? strcmp(a.text, b.text)
                 : (a.number > b.number) - (a.number < b.number);
    switch (how) {
    case EQ: return order == 0;
    case NE: return order != 0;
    case LT: return ordered && order < 0;
    case LE: return ordered && order <= 0;
    case GT: return ordered && order > 0;
    default: return ordered && order >= 0;
    }
}

/* Values of the job are read once, values of the clock for each time to check. */
static bool is_true(const weir_condition *c, int at, const value *values, int64_t now_ms)
{
    const node *n = &c->node[at];
    switch (n->kind) {
    case OR:  return is_true(c, n->a, values, now_ms) || is_true(c, n->b, values, now_ms);
    case AND: return is_true(c, n->a, values, now_ms) && is_true(c, n->b, values, now_ms);
    case NOT: return !is_true(c, n->a, values, now_ms);
    case COMPARE:
        break;
    }
    value side[2] = { { 0 } };
    for (int i = 0; i < (n->how == ALONE ? 1 : 2); i++) {
        int            which = i ? n->b : n->a;
        const operand *o = &c->operand[which];
        side[i] = o->from == FROM_NOW ? from_now(now_ms, o->field) : values[which];
    }
    return holds(side[0], n->how, side[1]);
}

static void read_values(const weir_condition *c, weir_job *job, value *values)
{
    for (int i = 0; i < c->n_operands; i++) {
        const operand *o = &c->operand[i];
        values[i] = o->from == FROM_TEXT  ? o->literal
                    : o->from == FROM_JOB ? from_job(job, o->field)
                    : o->from == FROM_NOW ? (value){ 0 } : from_data(job, o);
    }
}

bool weir__condition_holds(const weir_condition *c, const weir_job *job, int64_t now_ms)
{
    value    values[2 * WEIR_MAX_CONDITION_PARTS];
    weir_job view = *job;               /* with texts of its own, which go at the end */
    view.texts = NULL;
    read_values(c, &view, values);
    bool holds = is_true(c, c->top, values, now_ms);
    weir__texts_free(view.texts);
    return holds;
}

int64_t weir__condition_rest_ms(const weir_condition *c, int64_t now_ms)
{
    int64_t rest = c->step_ms ? c->step_ms - now_ms % c->step_ms : WEIR_CONDITION_MS;
    return rest < WEIR_CONDITION_MS ? rest : WEIR_CONDITION_MS;
}

int64_t weir_condition_when(const weir_condition *c, weir_job *job, int64_t now_ms)
{
    value values[2 * WEIR_MAX_CONDITION_PARTS];
    read_values(c, job, values);
    if (is_true(c, c->top, values, now_ms))
        return now_ms;
    for (int i = 1; c->step_ms && i <= c->steps; i++) {
        int64_t at = (now_ms / c->step_ms + i) * c->step_ms;
        if (is_true(c, c->top, values, at))
            return at;
    }
    return now_ms + WEIR_CONDITION_MS;
}
