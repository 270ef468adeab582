/* test_directory.c - directories that the program makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/directory.h"
#include "support/tempdir.h"

static void directories_are_private(void **state)
{
    (void)state;
    weir_error  err;
    struct stat st;
    char        dir[TEMPDIR_MAX], path[TEMPDIR_MAX + 32], file[TEMPDIR_MAX + 16];
    assert_true(tempdir_make(dir));
    snprintf(path, sizeof path, "%s/a/b", dir);
    assert_int_equal(cli_make_directory(path, &err), WEIR_OK);
    assert_int_equal(cli_make_directory(path, &err), WEIR_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    snprintf(file, sizeof file, "%s/file", dir);
    int fd = open(file, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    snprintf(path, sizeof path, "%s/x", file);
    assert_int_equal(cli_make_directory(path, &err), WEIR_EIO);
    assert_non_null(strstr(err.msg, "cannot make "));
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_are_private),
    };
    return cmocka_run_group_tests_name("directory", tests, NULL, NULL);
}
