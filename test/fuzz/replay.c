/* replay.c - run a fuzz target without libFuzzer: on files, on all files of directories, and on
 * every file cut short and with single bytes changed, which costs little and finds much. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

enum { MAX_FILE = 1024 * 1024, MAX_CHANGED = 4096 };

static int files;

/* A block of just that size each time, so that the sanitizer sees a read beyond it. */
static void run_once(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    MUST(copy);
    if (size)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_changed(uint8_t *data, size_t size)
{
    static const uint8_t odd[] = { 0x00, 0x80, 0xff, '"', '\\', '}', ']', ',', ':', '9', '*', '%' };
    for (size_t i = 0; i < size && i < MAX_CHANGED; i++) {
        uint8_t was = data[i];
        run_once(data, i);
        for (size_t k = 0; k < sizeof odd; k++) {
            data[i] = odd[k];
            run_once(data, size);
        }
        data[i] = was;
    }
}

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    uint8_t *data = malloc(MAX_FILE);
    MUST(data);
    size_t size = fread(data, 1, MAX_FILE, f);
    fclose(f);
    run_once(data, size);
    run_changed(data, size);
    free(data);
    files++;
}

static void run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st)) {
        perror(path);
        exit(1);
    }
    if (!S_ISDIR(st.st_mode)) {
        run_file(path);
        return;
    }
    struct dirent **names;
    int             n = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char file[4096];
        if (names[i]->d_name[0] != '.') {
            snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
            run_path(file);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

int main(int argc, char **argv)
{
    printf("1..1\n");
    for (int i = 1; i < argc; i++)
        run_path(argv[i]);
    printf("%s 1 - %d files replayed\n", files ? "ok" : "not ok", files);
    return !files;
}
