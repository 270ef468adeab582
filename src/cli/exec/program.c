/* program.c - see program.h. */
#include "cli/exec/program.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/near.h"

extern char **environ;

enum { LONGEST = 4096 };

/* ---- is it there? ---- */

typedef enum kind { ABSENT, DIRECTORY, NOT_EXECUTABLE, PROGRAM } kind;

static kind kind_of(const char *path)
{
    struct stat st;
    if (stat(path, &st))
        return ABSENT;
    if (S_ISDIR(st.st_mode))
        return DIRECTORY;
    return S_ISREG(st.st_mode) && !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? PROGRAM
                                                                               : NOT_EXECUTABLE;
}

/* The shell resolves its own words and the places of programs. */
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

/* The next folder of a PATH, with a slash at its end; *at goes on, to NULL behind the last. */
static void next_folder(const char **at, char out[LONGEST])
{
    size_t n = strcspn(*at, ":");       /* an empty folder is the current one */
    snprintf(out, LONGEST, "%.*s%s", (int)n, *at, n ? "/" : "./");
    *at = (*at)[n] ? *at + n + 1 : NULL;
}

static const char *search_path(char usual[LONGEST])
{
    const char *path = getenv("PATH");
    if (!path && confstr(_CS_PATH, usual, LONGEST))
        path = usual;
    return path;
}

/* As execvp() finds it. `where`: the file that is not a program. */
static kind find_in_path(const char *word, char where[2 * LONGEST])
{
    char        folder[LONGEST], path[2 * LONGEST], usual[LONGEST];
    kind        found = ABSENT;
    const char *at = *word ? search_path(usual) : NULL;
    while (at && found != PROGRAM) {
        next_folder(&at, folder);
        snprintf(path, sizeof path, "%s%s", folder, word);
        kind this = kind_of(path);
        if (this == PROGRAM || (this == NOT_EXECUTABLE && !found)) {
            found = this;
            strcpy(where, path);
        }
    }
    return found;
}

/* ---- which one may be meant? ---- */

typedef struct nearest {
    weir_near guess;                /* its best is `name` */
    char      name[NAME_MAX + 1];
} nearest;

/* Among equally near names, the one with the same first letter, else the first by name. */
static bool is_better(const nearest *n, const weir_near *one)
{
    if (!one->best || !n->guess.best || one->least != n->guess.least)
        return one->best && (!n->guess.best || one->least < n->guess.least);
    bool same = *one->best == *one->typed, known_same = *n->name == *one->typed;
    return same != known_same ? same : strcmp(one->best, n->name) < 0;
}

static void try_folder(nearest *n, const char *folder)
{
    DIR           *dir = opendir(folder);
    struct dirent *entry;
    char           path[LONGEST + NAME_MAX + 1];
    while (dir && (entry = readdir(dir))) {
        weir_near one = { .typed = n->guess.typed };
        weir__near_try(&one, entry->d_name);
        if (!is_better(n, &one))
            continue;
        snprintf(path, sizeof path, "%s%s", folder, entry->d_name);
        if (kind_of(path) != PROGRAM)
            continue;
        strcpy(n->name, entry->d_name);
        n->guess.best = n->name;
        n->guess.least = one.least;
    }
    if (dir)
        closedir(dir);
}

static weir_code refuse_absent(const char *word, weir_error *err)
{
    const char *slash = strrchr(word, '/'), *at;
    char        folder[LONGEST] = "", hint[200], usual[LONGEST];
    nearest     n = { .guess.typed = slash ? slash + 1 : word };
    if (slash) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash + 1 - word), word);
        try_folder(&n, folder);
    }
    for (at = slash ? NULL : search_path(usual); at;) {
        char each[LONGEST];
        next_folder(&at, each);
        try_folder(&n, each);
    }
    return weir_fail(err, WEIR_ENOENT, "cannot run '%s': no such program%s", word,
                     near_hint(hint, sizeof hint, &n.guess, folder));
}

/* ---- the check ---- */

static weir_code check_word(const char *word, bool shell, weir_error *err)
{
    char where[2 * LONGEST];
    kind found;
    snprintf(where, sizeof where, "%s", word);
    if (strchr(word, '/'))
        found = kind_of(word);
    else if (shell && shell_has(word))
        found = PROGRAM;
    else
        found = find_in_path(word, where);
    if (found == PROGRAM)
        return WEIR_OK;
    if (found == ABSENT)
        return refuse_absent(word, err);
    if (found == DIRECTORY)
        return weir_fail(err, WEIR_ENOENT, "cannot run '%s': it is a directory", word);
    return weir_fail(err, WEIR_ENOENT, "cannot run '%s': it is not executable; `chmod +x %s` makes "
                     "it so", word, where);
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
    return check_word(word, !argv, err);
}
