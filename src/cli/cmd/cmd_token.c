/* cmd_token.c - weir token: who may call a server that does not let in everybody. */
#include <string.h>

#include "cli/directory.h"
#include "cli/near.h"
#include "cli/say.h"
#include "server/config.h"
#include "server/access/tokens.h"

typedef struct token_opts {
    const char *role, *data, *config;
    opt_texts   types;
    opt_num     expires, grace;
} token_opts;
CLI_VALUES_FIT(token_opts);

enum { GRACE_MS = 24 * 3600 * 1000 };

#define AT(member) offsetof(token_opts, member)
static const option_entry token_options[] = {
    { .name = "role", .kind = OPT_TEXT, .at = AT(role), .arg = "ROLE",
      .words = "read produce work admin", .many = true,
      .help = "what it may do: read, produce, work or admin, or several as in produce,work; "
              "needed" },
    { .name = "type", .letter = 't', .kind = OPT_TEXTS, .at = AT(types), .arg = "TYPE",
      .words = "<type>",
      .help = "with jobs of this type alone, or of several as in mail,sms; can be repeated" },
    { .name = "expires", .kind = OPT_WHEN, .at = AT(expires), .arg = "WHEN",
      .words = "never",
      .help = "valid for this long (30d), until this time (2027-01-31T12:00Z), or always (never); "
              "without it, `add` makes a token that is always valid, `rotate` one that is valid "
              "for as long as the old one was when it was made" },
    { .name = "grace", .kind = OPT_DURATION, .at = AT(grace), .arg = "TIME",
      .help = "rotate: how long the old token stays valid (1d)" },
    { .name = "data", .kind = OPT_TEXT, .at = AT(data), .arg = "DIR", .words = "<file>",
      .help = "the data directory of the server (WEIR_DATA, ~/.local/share/weir)" },
    { .name = "config", .kind = OPT_TEXT, .at = AT(config), .arg = "FILE", .words = "<file>",
      .help = "or its configuration, which says that" },
    { 0 }
};
#undef AT

static void print_token(const cli *c, const char *name, const char *text)
{
    if (!c->json) {
        puts(text);
        return;
    }
    jw w = { .out = stdout };
    jw_object(&w, NULL);
    jw_text(&w, "name", name);
    jw_text(&w, "token", text);
    jw_end(&w, '}');
}

static int add(cli *c, const token_opts *o, const char *path)
{
    srv_caller who = { .expires_at = o->expires.n };
    char       text[SRV_TOKEN_TEXT];
    srv_tokens before;
    if (c->n_args != 2)
        return cli_usage(c, "NAME is missing");
    if (!o->role)
        return cli_usage(c, "--role is missing: read, produce, work or admin");
    if (!srv_roles_parse(o->role, &who.roles))
        return cli_usage(c, "--role: '%s' is not read, produce, work or admin", o->role);
    if (strlen(c->args[1]) >= sizeof who.name)
        return cli_usage(c, "NAME: more than %zu bytes", sizeof who.name - 1);
    for (size_t i = 0; i < o->types.n; i++)
        if (srv_caller_add_types(&who, o->types.text[i], &c->err))
            return cli_usage(c, "--type: '%s': %s", o->types.text[i], c->err.msg);
    strcpy(who.name, c->args[1]);
    weir_code rc = srv_tokens_read(&before, path, &c->err);
    bool      first = before.n == 0;
    srv_tokens_fini(&before);
    if (!rc)
        rc = srv_tokens_add(path, &who, cli_wall_ms(), text, &c->err);
    if (rc)
        return cli_fail(c);
    print_token(c, who.name, text);
    if (first)
        cli_note(c, "from now on every caller of the server needs a token");
    return 0;
}

static int rotate(cli *c, const token_opts *o, const char *path)
{
    char    text[SRV_TOKEN_TEXT], until[64];
    int64_t now = cli_wall_ms(), end = now + (o->grace.set ? o->grace.n : GRACE_MS);
    if (c->n_args != 2)
        return cli_usage(c, "NAME is missing");
    if (o->role || o->types.n)
        return cli_usage(c, "--role and --type: the new token has those of the old one");
    int64_t expires_at = o->expires.set && !o->expires.n ? SRV_NEVER_EXPIRES : o->expires.n;
    if (srv_tokens_rotate(path, c->args[1], now, end, expires_at, text, &c->err))
        return cli_fail(c);
    print_token(c, c->args[1], text);
    cli_note(c, "the old token is valid until %s", term_moment(until, sizeof until, end));
    return 0;
}

static void list_json(const srv_tokens *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const srv_token *each = &t->token[i];
        char             roles[64];
        jw               w = { .out = stdout };
        jw_object(&w, NULL);
        jw_text(&w, "name", each->who.name);
        jw_array(&w, "roles");
        srv_roles_text(each->who.roles, roles, sizeof roles);
        for (char *rest = roles, *role; (role = strtok_r(rest, ",", &rest));)
            jw_text(&w, NULL, role);
        jw_end(&w, ']');
        jw_array(&w, "types");
        for (const char *type = each->who.types; *type; type = srv_next_type(type))
            jw_text(&w, NULL, type);
        jw_end(&w, ']');
        jw_int(&w, "created_at", each->created_at);
        if (each->who.expires_at)
            jw_int(&w, "expires_at", each->who.expires_at);
        if (each->used_at)
            jw_int(&w, "used_at", each->used_at);
        jw_end(&w, '}');
    }
}

static void expiry_cell(table *out, const srv_caller *who, int64_t now)
{
    char    text[64];
    int64_t left = who->expires_at - now;
    if (!who->expires_at)
        table_cell(out, 5, COLOR_DIM, "never");
    else if (left <= 0)
        table_cell(out, 5, COLOR_RED, "expired");
    else
        table_cell(out, 5, left < SRV_EXPIRES_SOON_MS ? COLOR_YELLOW : COLOR_NONE, "%s",
                   term_moment(text, sizeof text, who->expires_at));
}

static void list_table(const srv_tokens *t)
{
    static const table_column columns[] = {
        { "NAME", false, true }, { "ROLE", false, false }, { "TYPE", false, true },
        { "MADE", false, false }, { "LAST USED", false, false }, { "EXPIRES", false, false }
    };
    table   out;
    char    text[SRV_TYPES_TEXT + 2 * SRV_MAX_TOKEN_TYPES];
    int64_t now = cli_wall_ms();
    table_init(&out, columns, 6);
    for (size_t i = 0; i < t->n; i++) {
        const srv_token *each = &t->token[i];
        table_row(&out);
        table_cell(&out, 0, COLOR_BOLD, "%s", each->who.name);
        table_cell(&out, 1, COLOR_NONE, "%s", srv_roles_text(each->who.roles, text, 64));
        table_cell(&out, 2, COLOR_NONE, "%s",
                   *each->who.types ? srv_caller_types_text(&each->who, text, sizeof text) : "*");
        table_cell(&out, 3, COLOR_DIM, "%s", term_moment(text, 64, each->created_at));
        table_cell(&out, 4, COLOR_DIM, "%s",
                   each->used_at ? term_moment(text, 64, each->used_at) : "never");
        expiry_cell(&out, &each->who, now);
    }
    table_print(&out, stdout, 0);
    table_fini(&out);
}

static int list(cli *c, const char *path)
{
    srv_tokens t;
    if (c->n_args != 1)
        return cli_usage(c, "'%s' is one argument too many", c->args[1]);
    if (srv_tokens_read(&t, path, &c->err))
        return srv_tokens_fini(&t), cli_fail(c);
    srv_tokens_read_uses(&t, path);
    if (c->json)
        list_json(&t);
    else if (t.n)
        list_table(&t);
    else
        cli_note(c, "no tokens in %s: programs on this machine may call without", path);
    srv_tokens_fini(&t);
    return 0;
}

static int revoke(cli *c, const char *path)
{
    if (srv_tokens_remove(path, c->args[1], &c->err))
        return cli_fail(c);
    cli_done(c, "revoked every token of %s", c->args[1]);
    return 0;
}

static int run_token(cli *c, const void *values)
{
    const token_opts *o = values;
    srv_given         given = { .data = o->data, .config = o->config, .store = "mem:" };
    srv_config       *config;
    char              path[4096], hint[80];
    if (srv_config_create(&config, &given, &c->err))
        return cli_fail(c);
    const char *dir = config->serve.data_dir;
    int         status;
    snprintf(path, sizeof path, "%s/tokens.json", dir ? dir : "");
    if (!dir)
        status = cli_usage(c, "where is the data directory? Neither --data nor HOME is set");
    else if (strcmp(c->args[0], "add") == 0)
        status = cli_make_directory(dir, &c->err) ? cli_fail(c) : add(c, o, path);
    else if (strcmp(c->args[0], "list") == 0)
        status = list(c, path);
    else if (strcmp(c->args[0], "rotate") == 0)
        status = rotate(c, o, path);
    else if (strcmp(c->args[0], "rm") != 0)
        status = cli_usage(c, "unknown action '%s'; expected add, list, rotate or rm%s",
                           c->args[0], near_words(hint, sizeof hint, c->args[0],
                                                  c->command->words));
    else if (c->n_args != 2)
        status = cli_usage(c, "NAME is missing");
    else
        status = revoke(c, path);
    srv_config_destroy(config);
    return status;
}

const command cmd_token = {
    .name = "token", .group = GROUP_STORE, .args = "add|list|rotate|rm [NAME]", .min_args = 1,
    .max_args = 2, .words = "add list rotate rm",
    .summary = "who may call the server",
    .help = "`add` prints the token, this once; callers send it as a header, `Authorization: "
            "Bearer TOKEN`. A running server applies a change within a second. Roles: read looks; "
            "produce adds jobs; work takes and ends them; admin may do everything. Each "
            "role may also look. "
            "`rotate` makes a new token with the rights of the old one, valid for as long as the "
            "old one was when it was made; the old one stays valid for a day. `rm` revokes all of "
            "that name at once.",
    .examples = "weir token add ci --role produce --type mail --type sms --expires 90d\n"
                "weir token add ann --role admin\n"
                "weir token rotate ci\n"
                "weir token rm ci\n",
    .options = token_options, .run = run_token,
};
