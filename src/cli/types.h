/* types.h - the types that a command names: its arguments TYPE, and --type. */
#ifndef WEIR_CLI_TYPES_H
#define WEIR_CLI_TYPES_H

#include "cli/cli.h"

/* NULL at the end; {0} is none, which means all. Names are borrowed. */
typedef struct cli_types {
    const char *name[WEIR_MAX_TAKE_TYPES + 1];
    size_t      n;
} cli_types;

/* An entry of a table of options: --type, an opt_texts. */
#define TYPE_OPTION(offset, about)                                                                \
    { .name = "type", .letter = 't', .kind = OPT_TEXTS, .at = offset, .arg = "TYPE",              \
      .words = "<type>", .help = about }

/* --when, a text; and the check of its condition before a store is opened: WEIR_EINVAL. */
#define WHEN_OPTION(offset)                                                                       \
    { .name = "when", .kind = OPT_TEXT, .at = offset, .arg = "CONDITION",                         \
      .help = "only jobs for which this is true; the others stay for other consumers: "           \
              "`data.region = \"eu\" and now.hour < 6`" }
weir_code cli_when_check(cli *c, const char *when);

/* The arguments, and what --type named (may be NULL). Error: too many. */
weir_code cli_types_take(cli *c, const opt_texts *option, cli_types *out);

/* Are these types of the store ("*" always is)? WEIR_ENOENT names the first unknown type, and the
 * type that may be meant. */
weir_code cli_types_check(cli *c, weir_queue *q, const cli_types *types);

/* The same as a remark, which ends with `what` in brackets: somebody waits for jobs that may
 * come. */
#define TYPES_WAIT "waiting for its first job"
void cli_types_note(cli *c, weir_queue *q, const cli_types *types, const char *what);

bool cli_types_have(const cli_types *types, const char *type);

#endif
