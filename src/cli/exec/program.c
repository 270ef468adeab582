/* program.c - see program.h. */
#include "cli/exec/program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LONGEST = 4096 };

/* The shell knows its own words, and where programs are. */
static bool shell_has(const char *word)
{
    char *argv[] = { "sh", "-c", "command -v -- \"$1\" >/dev/null", "sh", (char *)word, NULL };
    pid_t pid;
    int   status = 0;
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
        return true;                /* the first job will show it */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0;
}

static bool is_program(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS);
}

/* As execvp() finds it. A word of the shell may also be the name of a program: false, echo. */
static bool path_has(const char *word)
{
    char        path[2 * LONGEST], usual[LONGEST];
    const char *at = getenv("PATH");
    if (strchr(word, '/'))
        return is_program(word);
    if (!at && confstr(_CS_PATH, usual, sizeof usual))
        at = usual;
    while (at && *word) {
        size_t n = strcspn(at, ":");    /* an empty folder is the current one */
        snprintf(path, sizeof path, "%.*s%s%s", (int)n, at, n ? "/" : "./", word);
        if (is_program(path))
            return true;
        at = at[n] ? at + n + 1 : NULL;
    }
    return false;
}

weir_code program_check(const char *command, char *const *argv, weir_error *err)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    char              word[LONGEST];
    if (argv) {
        snprintf(word, sizeof word, "%s", argv[0]);
    } else {
        command += strspn(command, " \t");
        size_t n = strspn(command, plain);
        if (n == 0 || n >= sizeof word || (command[n] && !strchr(" \t", command[n])))
            return WEIR_OK;         /* more than a word: the shell's matter */
        snprintf(word, sizeof word, "%.*s", (int)n, command);
    }
    if (argv ? path_has(word) : shell_has(word))
        return WEIR_OK;
    return weir_fail(err, WEIR_ENOENT, "cannot run '%s': no such program, or it is not "
                     "executable", word);
}
