/* term.c - colours, widths, tables, bars and times for people who read. */
#include "cli/term.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include "cli/cli.h"

/* The capabilities of the terminal: written by term_init() alone, before any thread starts. */
static struct {
    bool utf8, no_color;
} env;

void term_init(void)
{
    if (!setlocale(LC_CTYPE, ""))
        setlocale(LC_CTYPE, "C");
    env.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (!env.utf8 && !getenv("LC_ALL") && !getenv("LC_CTYPE") && !getenv("LANG"))
        env.utf8 = setlocale(LC_CTYPE, "C.UTF-8") != NULL;      /* nobody asked for ASCII */
    const char *no = getenv("NO_COLOR"), *kind = getenv("TERM");
    env.no_color = (no && *no) || !kind || strcmp(kind, "dumb") == 0;
}

bool term_utf8(void)
{
    return env.utf8;
}

bool term_is_tty(FILE *f)
{
    return isatty(fileno(f));
}

bool term_has_color(FILE *f)
{
    return !env.no_color && term_is_tty(f);
}

static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    int         n = text ? atoi(text) : 0;
    return n >= 20 && n <= 1000 ? n : otherwise;
}

int term_width(FILE *f)
{
    struct winsize w;
    if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col >= 20)
        return w.ws_col;
    return from_environment("COLUMNS", 80);
}

int term_height(FILE *f)
{
    struct winsize w;
    if (ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_row >= 5)
        return w.ws_row;
    return from_environment("LINES", 24);
}

const char *term_on(FILE *f, term_color c)
{
    static const char *const code[] = {
        [COLOR_NONE] = "", [COLOR_BOLD] = "\033[1m", [COLOR_DIM] = "\033[2m",
        [COLOR_RED] = "\033[31m", [COLOR_GREEN] = "\033[32m", [COLOR_YELLOW] = "\033[33m",
        [COLOR_BLUE] = "\033[34m", [COLOR_CYAN] = "\033[36m", [COLOR_MAGENTA] = "\033[35m"
    };
    return term_has_color(f) ? code[c] : "";
}

const char *term_off(FILE *f)
{
    return term_has_color(f) ? "\033[0m" : "";
}

term_color term_state_color(weir_state s)
{
    static const term_color color[WEIR_STATE_COUNT] = {
        [WEIR_STATE_INACTIVE] = COLOR_NONE,  [WEIR_STATE_DELAYED] = COLOR_BLUE,
        [WEIR_STATE_ACTIVE] = COLOR_CYAN,    [WEIR_STATE_COMPLETE] = COLOR_GREEN,
        [WEIR_STATE_FAILED] = COLOR_RED,     [WEIR_STATE_CANCELLED] = COLOR_YELLOW
    };
    return s < WEIR_STATE_COUNT ? color[s] : COLOR_NONE;
}

/* ---- text ---- */

/* The character at `s`: its length in bytes and its width. A byte that is no UTF-8 and a hidden
 * character count as one column, and *clean is false: they are not to be printed as they are. */
static size_t character(const char *s, int *width, bool *clean)
{
    unsigned char c = (unsigned char)*s;
    *width = 1;
    *clean = c >= 0x20 && c < 0x7f;
    if (c < 0x80)
        return 1;
    size_t  n = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;
    wchar_t wide = (wchar_t)(c & (0xff >> (n + 1)));
    if (n == 1 || c >= 0xf5)
        return 1;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 1;
        wide = (wchar_t)((unsigned)wide << 6 | ((unsigned char)s[i] & 0x3f));
    }
    int w = wcwidth(wide);
    *clean = env.utf8 && w >= 0 && !weir_is_hidden((uint32_t)wide);
    *width = *clean ? w : 1;
    return n;
}

int term_text_width(const char *text)
{
    int total = 0, w;
    for (bool clean; *text; total += w)
        text += character(text, &w, &clean);
    return total;
}

char *term_clean(char *out, size_t size, const char *text, int width)
{
    const char *dots = env.utf8 ? "\xe2\x80\xa6" : "~";
    int         used = 0, w;
    bool        cut = width > 0 && term_text_width(text) > width, clean;
    size_t      len = 0;
    if (cut)
        width--;
    while (*text) {
        size_t n = character(text, &w, &clean);
        if ((width > 0 || cut) && used + w > width)
            break;
        if (len + n + 4 >= size)
            break;
        if (clean)
            memcpy(out + len, text, n);
        else
            out[len] = *text == '\n' || *text == '\t' ? ' ' : '.';
        len += clean ? n : 1;
        used += w;
        text += n;
    }
    out[len] = 0;
    if (cut && len + strlen(dots) < size)
        strcpy(out + len, dots);
    return out;
}

void term_wrap(FILE *out, const char *text, int indent, int width, bool started)
{
    int at = started ? indent : 0;
    if (!started)
        fprintf(out, "%*s", at = indent, "");
    bool first = true;
    for (const char *p = text; *p;) {
        size_t blank = strspn(p, " \n"), n = strcspn(p + blank, " \n");
        p += blank;
        if (!n)
            break;
        char word[512];
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        char clean[1100];
        int  w = term_text_width(term_clean(clean, sizeof clean, word, 0));
        if (!first && at + 1 + w > width) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
            first = true;
        }
        fprintf(out, "%s%s", first ? "" : " ", clean);
        at += w + !first;
        first = false;
        p += n;
    }
    fputc('\n', out);
}

/* ---- tables ---- */

void table_init(table *t, const table_column *columns, int n)
{
    *t = (table){ .column = columns, .n_columns = n };
}

static void *must_have(void *memory)
{
    weir_error err;
    if (!memory) {
        weir_fail(&err, WEIR_ENOMEM, "out of memory");
        exit(weir_complain(&err));
    }
    return memory;
}

void table_row(table *t)
{
    if (t->n_rows == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 32;
        t->cell = must_have(realloc(t->cell, t->cap * sizeof *t->cell));
        t->color = must_have(realloc(t->color, t->cap * sizeof *t->color));
    }
    t->cell[t->n_rows] = must_have(calloc(TABLE_COLUMNS, sizeof(char *)));
    memset(t->color[t->n_rows], 0, sizeof *t->color);
    t->n_rows++;
}

void table_cell(table *t, int column, term_color c, const char *fmt, ...)
{
    char    text[1024], clean[1100];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    char **cell = &t->cell[t->n_rows - 1][column];
    free(*cell);
    *cell = must_have(strdup(term_clean(clean, sizeof clean, text, 0)));
    t->color[t->n_rows - 1][column] = (unsigned char)c;
}

/* Columns that may shrink share what is missing, the widest first. */
static void fit(const table *t, int *width, int room)
{
    enum { LEAST = 6 };
    for (;;) {
        int sum = 0, widest = -1;
        for (int c = 0; c < t->n_columns; c++) {
            sum += width[c] + (c > 0 ? 2 : 0);
            if (t->column[c].shrink && width[c] > LEAST && (widest < 0 || width[c] > width[widest]))
                widest = c;
        }
        if (sum <= room || widest < 0)
            return;
        int over = sum - room, can = width[widest] - LEAST;
        width[widest] -= over < can && over < 4 ? over : can < 4 ? can : 4;
    }
}

static void print_row(const table *t, FILE *out, char *const *cell, const unsigned char *color,
                      const int *width, int indent)
{
    fprintf(out, "%*s", indent, "");
    for (int c = 0; c < t->n_columns; c++) {
        char        clean[1100];
        const char *text = cell ? cell[c] ? cell[c] : "" : t->column[c].title;
        bool        last = c == t->n_columns - 1;
        term_clean(clean, sizeof clean, text, width[c] ? width[c] : 1);
        int   pad = width[c] - term_text_width(clean);
        term_color k = cell ? (term_color)color[c] : COLOR_DIM;
        fprintf(out, "%*s%s%s%s", t->column[c].right && pad > 0 ? pad : 0, "",
                k ? term_on(out, k) : "", clean, k ? term_off(out) : "");
        if (!last)
            fprintf(out, "%*s", (t->column[c].right || pad < 0 ? 0 : pad) + 2, "");
    }
    fputc('\n', out);
}

void table_print(const table *t, FILE *out, int indent)
{
    int width[TABLE_COLUMNS];
    for (int c = 0; c < t->n_columns; c++) {
        width[c] = term_text_width(t->column[c].title);
        for (size_t r = 0; r < t->n_rows; r++) {
            int w = t->cell[r][c] ? term_text_width(t->cell[r][c]) : 0;
            width[c] = w > width[c] ? w : width[c];
        }
    }
    if (term_is_tty(out) || getenv("COLUMNS"))      /* what goes to a file or a pipe is whole */
        fit(t, width, term_width(out) - indent);
    print_row(t, out, NULL, NULL, width, indent);
    for (size_t r = 0; r < t->n_rows; r++)
        print_row(t, out, t->cell[r], t->color[r], width, indent);
}

void table_fini(table *t)
{
    for (size_t r = 0; r < t->n_rows; r++) {
        for (int c = 0; c < TABLE_COLUMNS; c++)
            free(t->cell[r][c]);
        free(t->cell[r]);
    }
    free(t->cell);
    free(t->color);
    *t = (table){ 0 };
}

/* ---- bars and times ---- */

char *term_bar(char *out, size_t size, double done, double total, int width)
{
    static const char *const eighth[] = { "", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d",
        "\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89" };
    double share = total > 0 ? done / total : 0;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    int    parts = (int)(share * width * 8 + 0.5), full = parts / 8;
    size_t len = 0;
    out[0] = 0;
    for (int i = 0; i < width && len + 4 < size; i++) {
        const char *s = !env.utf8 ? i < full ? "#" : "." : i < full ? "\xe2\x96\x88"
                        : i == full && parts % 8 ? eighth[parts % 8] : "\xe2\x96\x91";
        len += (size_t)snprintf(out + len, size - len, "%s", s);
    }
    return out;
}

char *term_duration(char *out, size_t size, int64_t ms)
{
    long long s = ms / 1000;
    if (ms < 0)
        snprintf(out, size, "-");
    else if (ms < 1000)
        snprintf(out, size, "%lldms", (long long)ms);
    else if (ms < 10000)
        snprintf(out, size, "%lld.%llds", s, (long long)ms % 1000 / 100);
    else if (s < 60)
        snprintf(out, size, "%llds", s);
    else if (s < 3600)
        snprintf(out, size, "%lldm%02llds", s / 60, s % 60);
    else if (s < 86400)
        snprintf(out, size, "%lldh%02lldm", s / 3600, s % 3600 / 60);
    else if (s < 100 * 86400)
        snprintf(out, size, "%lldd%lldh", s / 86400, s % 86400 / 3600);
    else
        snprintf(out, size, "%lldd", s / 86400);
    return out;
}

char *term_relative(char *out, size_t size, int64_t at_ms, int64_t now_ms)
{
    char text[32];
    if (at_ms == 0)
        snprintf(out, size, "-");
    else if (at_ms > now_ms)
        snprintf(out, size, "in %s", term_duration(text, sizeof text, at_ms - now_ms));
    else if (now_ms - at_ms < 1000)
        snprintf(out, size, "now");
    else
        snprintf(out, size, "%s ago", term_duration(text, sizeof text, now_ms - at_ms));
    return out;
}

char *term_moment(char *out, size_t size, int64_t at_ms)
{
    time_t    t = (time_t)(at_ms / 1000);
    struct tm tm;
    char      text[40];
    if (at_ms == 0 || !localtime_r(&t, &tm) ||
        !strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm))
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%s.%03d", text, (int)(at_ms % 1000));
    return out;
}

char *term_number(char *out, size_t size, uint64_t n)
{
    char   digits[24];
    int    len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    size_t at = 0;
    for (int i = 0; i < len && at + 2 < size; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

void term_progress_show(term_progress *p, uint64_t done)
{
    int64_t now = cli_clock_ms();
    char    bar[200], a[32], b[32];
    if (!term_is_tty(stderr) || (p->shown && now - p->last_ms < 100 && done < p->total))
        return;
    p->last_ms = now;
    p->shown = true;
    fprintf(stderr, "\r%s %s%s%s %s of %s\033[K", p->what, term_on(stderr, COLOR_GREEN),
            term_bar(bar, sizeof bar, (double)done, (double)p->total, 30), term_off(stderr),
            term_number(a, sizeof a, done), term_number(b, sizeof b, p->total));
    fflush(stderr);
}

void term_progress_end(term_progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
