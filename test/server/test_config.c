/* test_config.c - settings: where they come from, which holds, and what is said of wrong ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/config.h"
#include "support/tempdir.h"

static char dir[TEMPDIR_MAX], file[TEMPDIR_MAX + 16];

static void write_file(const char *text)
{
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

/* A home, and no variable of weir's. */
static int setup(void **state)
{
    (void)state;
    static const char *const names[] = {
        "CONFIG", "STORE", "DURABILITY", "LISTEN", "DATA", "TITLE", "API", "KUE_GET", "TLS_CERT",
        "TLS_KEY", "ORIGIN", "PUSH_PRIVATE", "ACCESS_LOG", "THREADS"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "WEIR_%s", names[i]);
        unsetenv(name);
    }
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "/home/ann", 1);
    assert_true(tempdir_make(dir));
    snprintf(file, sizeof file, "%s/weir.json", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tempdir_remove(dir);
    return 0;
}

static srv_config *good(const srv_given *given)
{
    weir_error  err;
    srv_config *c;
    if (srv_config_create(&c, given, &err))
        fail_msg("%s", err.msg);
    return c;
}

static void bad(const srv_given *given, const char *message)
{
    weir_error  err = { 0 };
    srv_config *c = (srv_config *)-1;
    assert_int_equal(srv_config_create(&c, given, &err), WEIR_EINVAL);
    assert_null(c);
    assert_string_equal(err.msg, message);
}

static void bad_file(const char *text, const char *behind_the_name)
{
    char message[500];
    write_file(text);
    snprintf(message, sizeof message, "%s: %s", file, behind_the_name);
    bad(&(srv_given){ .config = file }, message);
}

static void defaults(void **state)
{
    (void)state;
    srv_config *c = good(&(srv_given){ 0 });
    assert_string_equal(c->store, "sqlite:/home/ann/.local/share/weir/jobs.db");
    assert_string_equal(c->serve.listen, "127.0.0.1:7340");
    assert_string_equal(c->serve.data_dir, "/home/ann/.local/share/weir");
    assert_string_equal(c->serve.title, "weir");
    assert_int_equal(c->serve.api, SRV_API_KUE);
    assert_int_equal(c->durability, WEIR_DURABILITY_DEFAULT);
    assert_null(c->serve.tls_cert);
    assert_null(c->serve.access_log);
    assert_null(c->serve.origins);
    assert_null(c->note);
    assert_null(c->log_format);
    assert_null(c->log_level);
    assert_false(c->serve.kue_get || c->serve.push_private);
    srv_config_destroy(c);
}

static void the_data_directory(void **state)
{
    (void)state;
    setenv("XDG_DATA_HOME", "/x", 1);
    srv_config *c = good(&(srv_given){ 0 });
    assert_string_equal(c->store, "sqlite:/x/weir/jobs.db");
    srv_config_destroy(c);
    setenv("WEIR_DATA", "/var/lib/weir", 1);
    c = good(&(srv_given){ 0 });
    assert_string_equal(c->store, "sqlite:/var/lib/weir/jobs.db");
    assert_string_equal(c->serve.data_dir, "/var/lib/weir");
    srv_config_destroy(c);
    c = good(&(srv_given){ .data = "here", .store = "mem:" });
    assert_string_equal(c->store, "mem:");
    assert_string_equal(c->serve.data_dir, "here");
    srv_config_destroy(c);

    unsetenv("XDG_DATA_HOME");
    unsetenv("WEIR_DATA");
    unsetenv("HOME");
    c = good(&(srv_given){ .store = "mem:" });
    assert_null(c->serve.data_dir);
    srv_config_destroy(c);
    bad(&(srv_given){ 0 }, "no store: set --store, --data or HOME");
}

/* Option, environment, file, default: for each setting the first that says something. */
static void which_holds(void **state)
{
    (void)state;
    write_file("{\"listen\": \"127.0.0.1:1\", \"title\": \"file\", \"api\": \"vertx\","
               " \"threads\": 3, \"log-format\": \"json\", \"caller-rate\": 5,"
               " \"caller-answers\": 2, \"kue-get\": true, \"push-private\": true,"
               " \"durability\": \"os\", \"origin\": [\"https://a.example\", \"http://b:8080\"]}");
    setenv("WEIR_LISTEN", "127.0.0.1:2", 1);
    setenv("WEIR_TITLE", "environment", 1);
    setenv("WEIR_PUSH_PRIVATE", "false", 1);
    setenv("WEIR_ACCESS_LOG", "", 1);       /* empty is not set */
    srv_config *c = good(&(srv_given){ .config = file, .listen = "127.0.0.1:3" });
    assert_string_equal(c->serve.listen, "127.0.0.1:3");
    assert_string_equal(c->serve.title, "environment");
    assert_int_equal(c->serve.api, SRV_API_VERTX);
    assert_int_equal(c->serve.threads, 3);
    assert_string_equal(c->log_format, "json");
    assert_int_equal(c->serve.limits.caller[SRV_SHARE_RATE], 5);
    assert_int_equal(c->serve.limits.caller[SRV_SHARE_ANSWERS], 2 * 1024 * 1024);
    assert_int_equal(c->durability, WEIR_DURABILITY_OS);
    assert_true(c->serve.kue_get);
    assert_false(c->serve.push_private);
    assert_null(c->serve.access_log);
    assert_string_equal(c->serve.origins[0], "https://a.example");
    assert_string_equal(c->serve.origins[1], "http://b:8080");
    assert_null(c->serve.origins[2]);
    srv_config_destroy(c);

    setenv("WEIR_CONFIG", file, 1);
    setenv("WEIR_KUE_GET", "0", 1);
    c = good(&(srv_given){ .push_private = true, .durability = "disk", .threads = "1" });
    assert_int_equal(c->serve.api, SRV_API_VERTX);
    assert_int_equal(c->durability, WEIR_DURABILITY_DISK);
    assert_int_equal(c->serve.threads, 1);
    assert_true(c->serve.push_private);
    assert_false(c->serve.kue_get);
    srv_config_destroy(c);
}

static void work_queues(void **state)
{
    (void)state;
    write_file("{\"work_queues\": [{\"address\": \"a\"}, {\"address\": \"b\", "
               "\"process_timeout\": 5000, \"persistor_address\": \"p\", \"collection\": \"c\"}, "
               "{\"address\": \"d\", \"persist\": true, \"timed_out_first\": true}]}");
    srv_config          *c = good(&(srv_given){ .config = file });
    const srv_workqueue *q = c->serve.bus.workqueues;
    assert_int_equal(c->serve.bus.n_workqueues, 3);
    assert_string_equal(q[0].address, "a");
    assert_true(!q[0].persist && !q[0].timed_out_first && !q[0].process_timeout_ms);
    assert_true(q[1].persist && q[1].process_timeout_ms == 5000);
    assert_string_equal(q[1].collection, "c");
    assert_true(q[2].persist && q[2].timed_out_first && !q[2].collection);
    srv_config_destroy(c);
    bad_file("{\"work_queues\": [{\"process_timeout\": 5}]}",
             "work_queues[0]: address must be specified in config for busmod");
    bad_file("{\"work_queues\": [{\"address\": \"a\"}, {\"address\": \"a\"}]}",
             "work_queues[1].address: \"a\" is given twice");
    bad_file("{\"work_queues\": [{\"address\": \"a\", \"size\": 1}]}", "work_queues[0].size: "
             "unknown member; this object accepts: address, process_timeout, persist, collection, "
             "timed_out_first, persistor_address");
    bad_file("{\"work_queues\": [{\"address\": \"a\", \"collection\": \"c\"}]}",
             "work_queues[0].collection: only a persistent work queue has one; add "
             "\"persist\":true");
    bad_file("{\"work_queues\": {}}", "work_queues: {} is not a list");
    bad_file("{\"work_queue\": []}", "unknown setting \"work_queue\"; did you mean "
             "\"work_queues\"?");
}

static void the_bus(void **state)
{
    (void)state;
    srv_config *c = good(&(srv_given){ .bus = "127.0.0.1:0" });
    assert_string_equal(c->serve.bus.listen, "127.0.0.1:0");
    assert_null(c->serve.bus.inbound);
    srv_config_destroy(c);
    write_file("{\"bus\": {\"listen\": \"[::1]:1\", \"inbound\": [\"a.*\", \"b\"]}}");
    c = good(&(srv_given){ .config = file });
    assert_string_equal(c->serve.bus.listen, "[::1]:1");
    assert_string_equal(c->serve.bus.inbound[1], "b");
    assert_null(c->serve.bus.inbound[2]);
    assert_null(c->serve.bus.outbound[0]);
    srv_config_destroy(c);
    write_file("{\"bus\": \"127.0.0.1:2\"}");
    c = good(&(srv_given){ .config = file });
    assert_string_equal(c->serve.bus.listen, "127.0.0.1:2");
    srv_config_destroy(c);
}

static void files_that_are_wrong(void **state)
{
    (void)state;
    bad(&(srv_given){ .config = "/no/such/file" }, "/no/such/file: No such file or directory");
    bad_file("[]", "is not a JSON object: {\"listen\": ...}");
    bad_file("{\"lisen\": 1}", "unknown setting \"lisen\"; did you mean \"listen\"?");
    bad_file("{\"bus\": {\"in\": []}}", "bus: unknown setting \"in\"; must be listen, "
             "inbound or outbound");
    bad_file("{\"bus\": {\"inbound\": \"a\"}}", "bus: inbound: must be a list of "
             "at most 100 texts, each a regular expression for whole addresses");
    bad_file("{\"bus\": {\"outbound\": [1]}}", "bus: outbound: must be a list of "
             "at most 100 texts, each a regular expression for whole addresses");
    bad_file("{\"bus\": 5.5}", "bus: must be a text or a whole number");
    bad_file("{\"tls_cert\": 1}", "unknown setting \"tls_cert\"; did you mean \"tls-cert\"?");
    bad_file("{\"redis.hosts\": 1}", "unknown setting \"redis.hosts\"; did you mean "
                                     "\"redis.host\"?");
    bad_file("{\"something else\": 1}", "unknown setting \"something else\"");
    bad_file("{\"listen\": true}", "listen: must be a text or a whole number");
    bad_file("{\"listen\": [\"a\"]}", "listen: must be a text or a whole number");
    bad_file("{\"origin\": [1]}", "origin: must be a list of texts");
    bad_file("{\"kue-get\": 1}", "kue-get: must be true or false");
    bad_file("{\"threads\": 0}", "threads: '0' is not a whole number from 1 to 16");
    bad_file("{\"api\": \"kuo\"}", "api: 'kuo' is not kue or vertx");
    bad_file("{\"durability\": \"none\"}", "durability: 'none' is not disk or os");
    bad_file("{\"listen\": \"a\", \"listen\": \"b\"}",
             "line 1, column 24: duplicate object key near '\"listen\"'");
    weir_error  err;
    srv_config *c;
    write_file("{\n\"listen\":\n}");
    assert_int_equal(srv_config_create(&c, &(srv_given){ .config = file }, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.msg, "weir.json: line 3"));
}

static void values_that_are_wrong(void **state)
{
    (void)state;
    bad(&(srv_given){ .threads = "many" }, "--threads: 'many' is not a whole number from 1 to 16");
    bad(&(srv_given){ .threads = "17" }, "--threads: '17' is not a whole number from 1 to 16");
    bad(&(srv_given){ .caller_rate = "0" },
        "--caller-rate: '0' is not a whole number from 1 to 1000000");
    bad(&(srv_given){ .caller_bodies = "257" },
        "--caller-bodies: '257' is not a whole number from 1 to 256");
    bad(&(srv_given){ .tls_cert = "a.pem" }, "--tls-cert: needs tls-key too");
    bad(&(srv_given){ .tls_key = "a.pem" }, "--tls-key: needs tls-cert too");
    static const char *const origins[] = { "example.org", "https://", "https://a/path", "*" };
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++) {
        char message[300];
        snprintf(message, sizeof message, "--origin: '%s' is not an origin such as "
                 "https://jobs.example.org (small letters, no path)", origins[i]);
        bad(&(srv_given){ .origin = origins[i] }, message);
    }
    setenv("WEIR_KUE_GET", "yes", 1);
    bad(&(srv_given){ 0 }, "WEIR_KUE_GET: 'yes' is not true or false");
    unsetenv("WEIR_KUE_GET");
    setenv("WEIR_THREADS", "x", 1);
    bad(&(srv_given){ 0 }, "WEIR_THREADS: 'x' is not a whole number from 1 to 16");
}

static void names_of_vertx_kue(void **state)
{
    (void)state;
    write_file("{\"redis.host\": \"10.0.0.7\", \"redis.port\": 6380, \"http.port\": 8080,"
               " \"http.address\": \"0.0.0.0\", \"kue.ui.title\": \"Kue\","
               " \"job.promotion.interval\": 1000, \"job.promotion.limit\": 1000,"
               " \"job.ttl.interval\": 1000, \"job.ttl.limit\": 1000}");
    srv_config *c = good(&(srv_given){ .config = file });
    assert_int_equal(c->serve.api, SRV_API_VERTX);
    assert_string_equal(c->store, "redis+kue://10.0.0.7:6380?profile=vertx&promotion=1000ms");
    assert_string_equal(c->serve.listen, "0.0.0.0:8080");
    assert_string_equal(c->serve.title, "Kue");
    assert_non_null(strstr(c->note, "job.promotion.limit and job.ttl.* change nothing"));
    srv_config_destroy(c);
    c = good(&(srv_given){ .config = file, .listen = "127.0.0.1:0", .store = "mem:",
                           .api = "kue" });
    assert_int_equal(c->serve.api, SRV_API_KUE);
    assert_string_equal(c->store, "mem:");
    assert_string_equal(c->serve.listen, "127.0.0.1:0");
    srv_config_destroy(c);

    write_file("{\"redis.port\": 1, \"http.address\": \"::1\"}");
    c = good(&(srv_given){ .config = file });
    assert_string_equal(c->store, "redis+kue://127.0.0.1:1?profile=vertx");
    assert_string_equal(c->serve.listen, "[::1]:7340");
    assert_null(c->note);
    assert_int_equal(c->serve.api, SRV_API_VERTX);
    srv_config_destroy(c);

    write_file("{\"job.ttl.limit\": 1000}");
    c = good(&(srv_given){ .config = file });
    assert_non_null(c->note);
    srv_config_destroy(c);

    write_file("{\"disableSearch\": false}");
    c = good(&(srv_given){ .config = file });
    assert_int_equal(c->serve.search, SRV_SEARCH_ON);
    assert_int_equal(c->serve.api, SRV_API_KUE);
    srv_config_destroy(c);
    c = good(&(srv_given){ .config = file, .search = "off" });
    assert_int_equal(c->serve.search, SRV_SEARCH_OFF);
    srv_config_destroy(c);
    c = good(&(srv_given){ 0 });
    assert_int_equal(c->serve.search, SRV_SEARCH_AS_IT_IS);
    srv_config_destroy(c);
    bad(&(srv_given){ .search = "yes" }, "--search: 'yes' is not on or off");
    bad_file("{\"disableSearch\": 0}", "disableSearch: must be true or false");
    bad_file("{\"disableSearch\": false, \"search\": \"on\"}",
             "\"search\" and \"disableSearch\" say the same thing; leave one out");

    bad_file("{\"store\": \"mem:\", \"redis.host\": \"a\"}",
             "\"store\" and \"redis.host\" say the same thing; leave one out");
    bad_file("{\"listen\": \"a:1\", \"http.port\": 1}",
             "\"listen\" and \"http.port\" say the same thing; leave one out");
    bad_file("{\"title\": \"a\", \"kue.ui.title\": \"b\"}",
             "\"title\" and \"kue.ui.title\" say the same thing; leave one out");
    bad_file("{\"http.port\": 1.5}", "http.port: must be a text or a whole number");
}

static void a_file_that_others_may_write_to(void **state)
{
    (void)state;
    enum { NOBODY = 65534 };
    char message[1000];
    for (int mode = 0602; mode <= 0620; mode += 016) {
        write_file("{}");
        assert_int_equal(chmod(file, (mode_t)mode), 0);
        snprintf(message, sizeof message, "%s: others may write to it; chmod go-w %s", file,
                 file);
        bad(&(srv_given){ .config = file }, message);
    }
    assert_int_equal(chmod(file, 0644), 0);
    srv_config_destroy(good(&(srv_given){ .config = file }));
    if (geteuid() != 0)
        return;
    /* their own and root's; root also what belongs to the owner of the directory */
    assert_int_equal(chmod(dir, 0755), 0);
    assert_int_equal(chown(file, 12345, 12345), 0);
    snprintf(message, sizeof message, "%s: belongs to another user (12345); it must be this user's "
             "or root's", file);
    bad(&(srv_given){ .config = file }, message);
    assert_int_equal(chown(dir, 12345, 12345), 0);
    srv_config_destroy(good(&(srv_given){ .config = file }));
    assert_int_equal(chown(dir, 0, 0), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    bad(&(srv_given){ .config = file }, message);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chown(file, 0, 0), 0);
    assert_int_equal(seteuid(NOBODY), 0);
    srv_config *c = good(&(srv_given){ .config = file });
    assert_int_equal(seteuid(0), 0);
    srv_config_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(the_data_directory, setup, teardown),
        cmocka_unit_test_setup_teardown(which_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(the_bus, setup, teardown),
        cmocka_unit_test_setup_teardown(work_queues, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_are_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(values_that_are_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_vertx_kue, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_others_may_write_to, setup, teardown),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
