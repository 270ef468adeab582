/* args.c - see args.h. */
#include "cli/args.h"

#include <stdlib.h>
#include <string.h>

static const char *const secret_options[] = { "token=", "password=", NULL };

/* Put "***" in place of `len` bytes at `from`; zeros follow the text, where it was longer. */
static void hide(char *from, size_t len)
{
    static const char stars[] = "***";
    size_t rest = strlen(from + len), shown = len < 3 ? len : 3;
    memcpy(from, stars, shown);
    memmove(from + shown, from + len, rest);
    memset(from + shown + rest, 0, len - shown);
}

/* "user:PASSWORD@". The last "@" counts, also one behind a slash: somebody may have forgotten to
 * write the slash of a password as %2F. */
static void hide_password(char *authority)
{
    size_t len = strcspn(authority, "?");
    char  *at = memrchr(authority, '@', len);
    char  *colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
    if (colon)
        hide(colon + 1, (size_t)(at - colon - 1));
}

static void hide_options(char *query)
{
    for (char *at = query; at; at = strchr(at, '&')) {
        at++;
        for (const char *const *name = secret_options; *name; name++)
            if (!strncmp(at, *name, strlen(*name)))
                hide(at + strlen(*name), strcspn(at + strlen(*name), "&"));
    }
}

void args_hide_secrets(char *text)
{
    char *slashes = strstr(text, "://");
    if (!slashes)
        return;
    hide_password(slashes + 3);
    hide_options(strchr(slashes, '?'));
}

char **args_private(int argc, char **argv)
{
    static char **copy;             /* lives as long as the program */
    copy = calloc((size_t)argc + 1, sizeof *copy);
    for (int i = 0; copy && i < argc; i++) {
        copy[i] = strdup(argv[i]);
        if (!copy[i])
            return NULL;
        args_hide_secrets(argv[i]);
    }
    return copy;
}
