/* cmd_token.c - weir token: who may call a server that does not let in everybody. */
#include <string.h>

#include "cli/cli.h"
#include "server/config.h"
#include "server/tokens.h"

typedef struct token_opts {
    const char *role, *type, *data, *config;
} token_opts;
CLI_VALUES_FIT(token_opts);

#define AT(member) offsetof(token_opts, member)
const option_entry token_options[] = {
    { "role", 0, OPT_TEXT, AT(role), "ROLE", "what it may do: read, produce, work or admin, or "
      "several as in produce,work; needed", 0, 0, "read produce work admin" },
    { "type", 0, OPT_TEXT, AT(type), "TYPE", "with jobs of this type alone", 0, 0, "<type>" },
    { "data", 0, OPT_TEXT, AT(data), "DIR", "the data directory of the server (WEIR_DATA, "
      "~/.local/share/weir)", 0, 0, "<file>" },
    { "config", 0, OPT_TEXT, AT(config), "FILE", "or its configuration, which says that", 0, 0,
      "<file>" },
    { 0 }
};
#undef AT

static int add(cli *c, const token_opts *o, const char *path)
{
    srv_caller who = { 0 };
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
    if (o->type && strlen(o->type) >= sizeof who.type)
        return cli_usage(c, "--type: more than %zu bytes", sizeof who.type - 1);
    strcpy(who.name, c->args[1]);
    strcpy(who.type, o->type ? o->type : "");
    weir_code rc = srv_tokens_read(&before, path, &c->err);
    bool      first = before.n == 0;
    srv_tokens_fini(&before);
    if (!rc)
        rc = srv_tokens_add(path, &who, opt_now_ms(), text, &c->err);
    if (rc)
        return cli_fail(c);
    if (c->json) {
        jw w = { .out = stdout };
        jw_object(&w, NULL);
        jw_text(&w, "name", who.name);
        jw_text(&w, "token", text);
        jw_end(&w, '}');
    } else {
        puts(text);
    }
    if (first)
        fputs("weir: from now on every caller of the server needs a token\n", stderr);
    return 0;
}

static void list_json(const srv_tokens *t)
{
    for (size_t i = 0; i < t->n; i++) {
        char roles[64];
        jw   w = { .out = stdout };
        jw_object(&w, NULL);
        jw_text(&w, "name", t->token[i].who.name);
        jw_array(&w, "roles");
        srv_roles_text(t->token[i].who.roles, roles, sizeof roles);
        for (char *rest = roles, *each; (each = strtok_r(rest, ",", &rest));)
            jw_text(&w, NULL, each);
        jw_end(&w, ']');
        jw_text(&w, "type", *t->token[i].who.type ? t->token[i].who.type : NULL);
        jw_int(&w, "created_at", t->token[i].created_at);
        jw_end(&w, '}');
    }
}

static void list_table(const srv_tokens *t)
{
    static const table_column columns[] = {
        { "NAME", false, true }, { "ROLE", false, false }, { "TYPE", false, true },
        { "MADE", false, false }
    };
    table out;
    char  text[64];
    table_init(&out, columns, 4);
    for (size_t i = 0; i < t->n; i++) {
        const srv_token *each = &t->token[i];
        table_row(&out);
        table_cell(&out, 0, COLOR_BOLD, "%s", each->who.name);
        table_cell(&out, 1, COLOR_NONE, "%s", srv_roles_text(each->who.roles, text, sizeof text));
        table_cell(&out, 2, COLOR_NONE, "%s", *each->who.type ? each->who.type : "*");
        table_cell(&out, 3, COLOR_DIM, "%s", term_moment(text, sizeof text, each->created_at));
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
    if (c->json)
        list_json(&t);
    else if (t.n)
        list_table(&t);
    else
        fprintf(stderr, "weir: there are no tokens in %s: programs on this machine may call "
                "without\n", path);
    srv_tokens_fini(&t);
    return 0;
}

int cmd_token(cli *c, const void *values)
{
    const token_opts *o = values;
    srv_given         given = { .data = o->data, .config = o->config, .store = "mem:" };
    srv_config       *config;
    char              path[4096];
    if (srv_config_create(&config, &given, &c->err))
        return cli_fail(c);
    const char *dir = config->serve.data_dir;
    int         status;
    snprintf(path, sizeof path, "%s/tokens.json", dir ? dir : "");
    if (!dir)
        status = cli_usage(c, "where is the data directory? Neither --data nor HOME is set");
    else if (strcmp(c->args[0], "add") == 0)
        status = srv_make_directory(dir, &c->err) ? cli_fail(c) : add(c, o, path);
    else if (strcmp(c->args[0], "list") == 0)
        status = list(c, path);
    else if (strcmp(c->args[0], "rm") != 0)
        status = cli_usage(c, "'%s' is not add, list or rm", c->args[0]);
    else if (c->n_args != 2)
        status = cli_usage(c, "NAME is missing");
    else
        status = srv_tokens_remove(path, c->args[1], &c->err) ? cli_fail(c) : 0;
    srv_config_destroy(config);
    return status;
}
