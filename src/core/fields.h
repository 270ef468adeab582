/* fields.h - the members of a JSON object, read into a struct by a table.
 *
 *     typedef struct order { const char *text; int64_t wait_ms; weir_json_piece data; } order;
 *     static const weir_field order_fields[] = {
 *         WEIR_FIELD("text", weir__as_text, offsetof(order, text), .needed = true),
 *         WEIR_FIELD("wait", weir__as_ms, offsetof(order, wait_ms), .max = 60000),
 *         WEIR_FIELD("data", weir__as_raw, offsetof(order, data)),
 *         { 0 }
 *     };
 *
 * No number goes through a double, and a raw piece keeps every byte. Unknown members (unless the
 * reader is lenient), repeated members and missing needed ones are refused by name. A missing
 * optional member leaves the struct as it is. Pure: no lock, any thread. */
#ifndef WEIR_CORE_FIELDS_H
#define WEIR_CORE_FIELDS_H

#include "base/json.h"
#include "weir/queue.h"

/* Where texts and lists go, and what was wrong. Set alloc and ctx; the rest is zero. */
typedef struct weir_reader {
    void      *(*alloc)(void *ctx, size_t size);    /* zeroed, and kept by the caller; NULL: none */
    void       *ctx;
    char       *room;                               /* of the last block for texts */
    size_t      left;
    weir_error  err;                                /* "jobs[3].delivery: missing", with the field
                                                       "jobs[3].delivery"; "": all of it */
    const char *end;                                /* where what was read last ends, if it was an
                                                       object or a list */
    bool        lenient;                            /* members that no table has are passed over:
                                                       a later version answers with more */
    bool        shallow;                            /* weir__read_check() found that it nests at
                                                       most WEIR_MAX_DEPTH levels deep */
} weir_reader;

/* Memory for readers that is released all at once; {0} is empty. */
typedef struct weir_arena {
    struct weir__block *blocks;
} weir_arena;

void *weir__arena_alloc(void *arena, size_t size);      /* weir_reader.alloc; zeroed */
void  weir__arena_free(weir_arena *arena);

typedef struct weir_field weir_field;
/* Reads one value into `to`. On failure in->err says what is wrong, without the name; its
 * field is that inside of the value. */
typedef weir_code weir_field_read(weir_reader *in, const weir_field *f, weir_json_piece value,
                                  void *to);

struct weir_field {
    const char       *name;         /* NULL ends the table, which has at most 64 */
    weir_field_read  *read;
    size_t            offset;       /* of what it fills */
    bool              needed;
    size_t            given;        /* offset of a bool that is set when it is there; 0: none */
    int64_t           min, max;     /* numbers: between them; texts: the number of bytes; lists: the
                                       number of elements. Both 0: whatever the type holds */
    const weir_field *fields;       /* of weir__as_object, weir__as_list */
    size_t            size;         /* of an element of weir__as_list */
    bool              inside;       /* of an object or list that is long: its reader is called only
                                       where it begins, and sets in->end; of a list, also the
                                       reader of its elements */
};

/* name, reader, offset and whatever else, by name: .needed = true */
#define WEIR_FIELD(member, how, ...) { .name = member, .read = how, .offset = __VA_ARGS__ }

typedef struct weir_texts {
    const char **text;              /* NULL at the end; NULL: was not there */
    size_t       n;
} weir_texts;
typedef struct weir_ids {
    uint64_t *id;
    size_t    n;
} weir_ids;
typedef struct weir_items {
    void  *item;                    /* an array of structs, zero but for what was given */
    size_t n;
} weir_items;

weir_field_read weir__as_text;      /* const char *; no zero byte in it */
weir_field_read weir__as_type;      /* const char *: the name of a type */
weir_field_read weir__as_int;       /* int64_t */
weir_field_read weir__as_int32;     /* int32_t */
weir_field_read weir__as_number;    /* uint64_t */
weir_field_read weir__as_id;        /* uint64_t, not 0 */
weir_field_read weir__as_delivery;  /* uint32_t, not 0 */
weir_field_read weir__as_any_delivery;      /* uint32_t */
weir_field_read weir__as_ms;        /* int64_t: 1500 or "1s500ms" */
weir_field_read weir__as_moment;    /* int64_t: milliseconds since 1970 */
weir_field_read weir__as_bool;
weir_field_read weir__as_state;     /* weir_state */
weir_field_read weir__as_sort;      /* weir_sort */
weir_field_read weir__as_states;    /* uint32_t, bits WEIR_BIT(state): a list, or one */
weir_field_read weir__as_priority;  /* int32_t: a name or a number */
weir_field_read weir__as_backoff;   /* weir_backoff: as weir_job_json() writes it, or as text */
weir_field_read weir__as_raw;       /* weir_json_piece, or a const char * and the size_t behind */
weir_field_read weir__as_texts;     /* weir_texts */
weir_field_read weir__as_ids;       /* weir_ids */
weir_field_read weir__as_object;    /* a struct inside of the struct, by f->fields */
weir_field_read weir__as_list;      /* weir_items, each by f->fields */

/* Is the text JSON, nested at most `depth` deep? Once for the whole of it, before what follows. */
weir_code weir__read_check(weir_reader *in, const char *text, size_t len, int depth);

/* Read one object. */
weir_code weir__read(weir_reader *in, const weir_field *table, weir_json_piece object, void *out);

/* The same for an object that says what to add: fields of weir_spec with the names of
 * weir_job_json(), "attempts" and "run_at". Values that weir_add() would refuse are refused. */
weir_code weir__read_spec(weir_reader *in, weir_json_piece object, weir_spec *out);
extern const weir_field weir__spec_fields[];        /* without the checks of weir_add() */

/* A job with the names of weir_job_json(), and its log: what there is of it. Whether it can be is
 * weir__job_valid()'s to say. */
typedef struct weir_read_job {
    weir_job   job;
    weir_items log;                 /* of weir_line */
} weir_read_job;
extern const weir_field weir__job_fields[];             /* into weir_read_job */
extern const weir_field weir__line_fields[];            /* into weir_line */

/* For readers of one's own: each element of a list with `read`, into an array of things that are
 * `size` bytes long (*array is NULL before). */
weir_code weir__read_list(weir_reader *in, const weir_field *f, weir_json_piece value, size_t size,
                          weir_field_read *read, void **array, size_t *n);

/* For readers of one's own: "VALUE is not WANTED", cut where it is long. */
weir_code weir__not_a(weir_reader *in, weir_json_piece value, const char *wanted);

#endif
