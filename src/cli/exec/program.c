/* program.c - see program.h. */
#include "cli/exec/program.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LONGEST = 4096 };

/* The shell knows its own words, and where programs are. With `direct` only programs count. */
static bool is_there(const char *word, bool direct)
{
    static const char any[] = "command -v -- \"$1\" >/dev/null";
    static const char program[] =
        "w=$(command -v -- \"$1\") && case $w in */*) :;; *) false;; esac";
    char *argv[] = { "sh", "-c", (char *)(direct ? program : any), "sh", (char *)word, NULL };
    pid_t pid;
    int   status = 0;
    if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
        return true;                /* then the first job tells */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status == 0;
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
    if (is_there(word, argv != NULL))
        return WEIR_OK;
    return weir_fail(err, WEIR_ENOENT, "cannot run '%s': no such program, or it is not "
                     "executable", word);
}
