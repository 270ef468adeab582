/* test_cpp.cpp - the C++ wrapper: the same cases with exceptions and with results. Writes TAP. */
#include "tap.hpp"

using weir::Job;
using weir::Queue;
using weir::Spec;
using namespace std::chrono_literals;

static Queue opened() { return must(Queue::open("mem:")); }

#ifdef WEIR_NO_EXCEPTIONS
static void check(weir::result<void> r) { must(std::move(r)); }
#define DO(call) check(call)
#else
#define DO(call) (call)
#endif

static void adds_and_gets()
{
    Queue queue = opened();
    auto  added = must(queue.add(Spec("mail").data(R"({"to":"ann","n":[1,{"x":2.5}]})")
                                     .priority(WEIR_PRIORITY_HIGH).attempts(3).delay(2s)
                                     .backoff(WEIR_BACKOFF_EXPONENTIAL, 1s, 60s, 10)
                                     .unique("k").values(R"({"size":7,"color":"red"})")));
    CHECK(added.id == 1 && added.state == WEIR_STATE_DELAYED && !added.existed);
    Job job = must(queue.get(added.id));
    CHECK(job && job.id() == 1 && job.type() == "mail" && job.state_name() == "delayed");
    CHECK(job.priority() == -10 && job.max_attempts() == 3 && job.delay() == 2s);
    CHECK(job.unique() == "k" && job.result().empty() && job.error().empty());
    CHECK(job.promote_at() == job.created_at() + 2s);
    CHECK(job.data_text("to", "?") == "ann" && job.data_text("cc", "?") == "?");
    CHECK(job.data_int("n[0]", 0) == 1 && job.data_number("n[1].x", 0) == 2.5);
    CHECK(job.data_bool("to", true) && job.value_int("size", 0) == 7);
    CHECK(job.value_text("color", "") == "red");
    CHECK(job.json().find("\"type\":\"mail\"") != std::string::npos);
    CHECK(must(queue.add(Spec("mail").unique("k"))).existed);
    CHECK(must(queue.exists(1)) && !must(queue.exists(2)));
}

static void adds_many()
{
    Queue queue = opened();
    auto  added = must(queue.add_many({Spec("a"), Spec("b").data("[1]"), Spec("a")}));
    CHECK(added.size() == 3 && added[2].id == 3);
    CHECK(must(queue.count()) == 3 && must(queue.count(WEIR_STATE_INACTIVE, "a")) == 2);
    weir::Error why = error_of([&] { return queue.add_many({Spec("a"), Spec("b").attempts(-1)}); });
    CHECK(why.code() == WEIR_EINVAL && why.field() == "jobs[1].attempts");
    CHECK(must(queue.count()) == 3);
}

static void says_what_is_wrong()
{
    Queue       queue = opened();
    weir::Error why = error_of([&] { return queue.get(99); });
    CHECK(why.code() == WEIR_ENOENT && !why.may_retry());
    CHECK(std::string(why.what()).find("99") != std::string::npos);
    why = error_of([&] { return queue.add(Spec("mail").data("{")); });
    CHECK(why.code() == WEIR_EINVAL && why.field() == "data");
    CHECK(error_of([] { return Queue::open("nowhere:"); }).code() == WEIR_EINVAL);
    /* A zero byte must not cut a text. */
    CHECK(error_of([&] { return queue.add(Spec(std::string_view("ma\0il", 5))); }).code() ==
          WEIR_EINVAL);
    CHECK(error_of([&] { return queue.wait(must(queue.add(Spec("x"))).id, 1ms); }).code() ==
          WEIR_ETIMEOUT);
}

static void handlers_answer_in_every_way()
{
    Queue queue = opened();
    auto  pool = must(queue.process("way", weir::PoolOptions().threads(2), [](Job &job) {
        std::string way = job.data_text("way", "");
        DO(job.log("the way is " + way));
        DO(job.progress(1, 2, "{\"half\":true}"));
        DO(job.set("seen", "true"));
        if (way == "done")
            return job.done("[1]");
        if (way == "give_up")
            return job.give_up("no 100% way");
        if (way == "back" && job.value_int("back", 0) == 0) {
            DO(job.set("back", "1"));
            return job.give_back();
        }
        return way == "fail" ? job.fail("no %s way") : job.done();
    }));
    auto of = [&](const char *way) {
        auto data = std::string("{\"way\":\"") + way + "\"}";
        return must(queue.wait(must(queue.add(Spec("way").data(data).attempts(2))).id, patience));
    };
    Job job = of("done");
    CHECK(job.state() == WEIR_STATE_COMPLETE && job.result() == "[1]" && job.attempts() == 1);
    CHECK(job.progress_data() == "{\"half\":true}" && job.values() == "{\"seen\":true}");
    auto lines = must(queue.logs(job.id()));
    CHECK(lines.size() == 1 && lines[0].text == "the way is done" && lines[0].n == 1);
    job = of("fail");
    CHECK(job.state() == WEIR_STATE_FAILED && job.error() == "no %s way" && job.attempts() == 2);
    job = of("give_up");
    CHECK(job.state() == WEIR_STATE_FAILED && job.error() == "no 100% way" && job.attempts() == 1);
    job = of("back");
    CHECK(job.state() == WEIR_STATE_COMPLETE && job.delivery() == 2 && job.attempts() == 1);
    CHECK(must(queue.stats()).completed("way") == 2 && must(queue.stats()).failed("way") == 3);
    DO(pool.stop(patience));
    auto stats = pool.stats();
    CHECK(stats.threads == 0 && stats.returned == 1 && stats.failed == 3 && stats.completed == 2);
}

static void handlers_return_texts_or_nothing()
{
    Queue queue = opened();
    must(queue.process("text", [](Job &job) {
        return "{\"id\":" + std::to_string(job.id()) + "}";
    }));
    must(queue.process("nothing", [](Job &) {}));
    must(queue.process("code", [](Job &) { return WEIR_EBUSY; }));
    must(queue.process("bad", [](Job &) { return "{"; }));
    auto of = [&](const char *type) {
        return must(queue.wait(must(queue.add(Spec(type))).id, patience));
    };
    CHECK(of("text").result() == "{\"id\":1}");
    CHECK(of("nothing").state() == WEIR_STATE_COMPLETE);
    CHECK(of("code").error() == "the store belongs to another process");
    CHECK(of("bad").state() == WEIR_STATE_FAILED);
}

#ifdef __cpp_exceptions
static void exceptions_fail_the_job()
{
    Queue queue = opened();
    must(queue.process("throw", [](Job &job) -> std::string {
        if (job.data_bool("std", false))
            throw std::runtime_error("smtp: 100% %s");
        throw 7;
    }));
    auto of = [&](const char *data) {
        return must(queue.wait(must(queue.add(Spec("throw").data(data))).id, patience)).error();
    };
    CHECK(of("{\"std\":true}") == "smtp: 100% %s");
    CHECK(of("{}") == "an exception that is no std::exception");
}
#endif

static void a_job_may_end_later()
{
    Queue      queue = opened();
    std::mutex lock;
    Job        kept;
    Counter    came;
    must(queue.process("later", [&](Job &job) {
        std::lock_guard<std::mutex> guard(lock);
        kept = std::move(job);
        came.add();
        return weir::later;
    }));
    auto id = must(queue.add(Spec("later"))).id;
    came.wait_for(1);
    {
        std::lock_guard<std::mutex> guard(lock);
        CHECK(kept.id() == id);
        must(kept.done("\"late\""));
    }
    CHECK(must(queue.wait(id, patience)).result() == "\"late\"");
}

static void takes_by_hand()
{
    Queue queue = opened();
    CHECK(!must(queue.take("hand")));
    must(queue.add_many({Spec("hand"), Spec("foot").priority(WEIR_PRIORITY_HIGH), Spec("hand"),
                         Spec("hand")}));
    auto jobs = must(queue.take({"hand", "foot"}, 3, 30s));
    CHECK(jobs.size() == 3 && jobs[0].type() == "foot" && jobs[0].delivery() == 1);
    must(jobs[0].done("{}"));
    must(jobs[1].fail("by hand"));
    DO(jobs[2].renew(60s));
    must(jobs[2].give_back(1h));
    CHECK(error_of([&] { return jobs[0].done(); }).code() == WEIR_ESTALE);
    CHECK(must(queue.get(2)).state() == WEIR_STATE_COMPLETE);
    CHECK(must(queue.get(1)).error() == "by hand");
    CHECK(must(queue.get(3)).state() == WEIR_STATE_DELAYED);
    /* A taken job keeps its queue open. */
    Job last;
    {
        Queue other = opened();
        must(other.add(Spec("hand")));
        last = must(other.take("hand"));
    }
    CHECK(last);
    must(last.done());
}

static void changes_jobs()
{
    Queue queue = opened();
    auto  id = must(queue.add(Spec("c").delay(1h))).id;
    DO(queue.promote(id));
    DO(queue.update(id, weir::Change().priority(3).data("[]").values("{\"a\":1}")));
    DO(queue.set(id, "b", "2"));
    DO(queue.log(id, "looked at it"));
    Job job = must(queue.get(id));
    CHECK(job.priority() == 3 && job.data() == "[]" && job.values() == "{\"a\":1,\"b\":2}");
    DO(queue.cancel(id));
    CHECK(must(queue.get(id)).state() == WEIR_STATE_CANCELLED);
    CHECK(error_of([&] { return queue.promote(id); }).code() == WEIR_ESTATE);
    DO(queue.retry(id));
    DO(queue.pause("c"));
    CHECK(must(queue.stats()).paused("c") && !must(queue.take("c")));
    DO(queue.resume("c"));
    DO(queue.ready());
    DO(queue.remove(id));
    CHECK(!must(queue.exists(id)));
}

static void a_handler_sees_that_it_is_cancelled()
{
    Queue   queue = opened();
    Counter running, seen;
    must(queue.process("long", [&](Job &job) {
        running.add();
        while (!job.cancelled())
            std::this_thread::yield();
        seen.add();
    }));
    auto id = must(queue.add(Spec("long"))).id;
    running.wait_for(1);
    DO(queue.cancel(id));
    seen.wait_for(1);
    CHECK(must(queue.wait(id, patience)).state() == WEIR_STATE_CANCELLED);
}

static void lists_by_pages()
{
    Queue queue = opened();
    must(queue.add_many(std::vector<Spec>(5, Spec("p").search().data("{\"word\":\"needle\"}"))));
    auto page = must(queue.list(weir::Query().type("p").state(WEIR_STATE_INACTIVE).limit(3)));
    CHECK(page.jobs.size() == 3 && page.more && page.jobs[2].id() == 3);
    page = must(queue.list(weir::Query().type("p").state(WEIR_STATE_INACTIVE).after(page.next)));
    CHECK(page.jobs.size() == 2 && !page.more);
    page = must(queue.list(weir::Query().state(WEIR_STATE_INACTIVE).state(WEIR_STATE_DELAYED)
                               .sort(WEIR_SORT_CREATED).descending().limit(1)));
    CHECK(page.jobs.size() == 1 && page.more);
    CHECK(must(queue.list(weir::Query().until(weir::moment(weir::milliseconds(1))))).jobs.empty());
    CHECK(must(queue.list(weir::Query().search("needle").descending())).jobs[0].id() == 5);
    auto stats = must(queue.stats());
    CHECK(stats.types() == std::vector<std::string>{"p"} && stats.last_id() == 5);
    CHECK(stats.count(WEIR_STATE_INACTIVE, "p") == 5 && stats.count(WEIR_STATE_ANY) == 5);
    CHECK(stats.count(WEIR_STATE_ANY, "q") == 0 && !stats.json().empty());
}

static void futures_are_the_answer_later()
{
    Queue queue = opened();
    auto  many = must(queue.add_many_async({Spec("f"), Spec("f")}));
    CHECK(must(many.get(patience)).size() == 2);
    auto one = must(queue.add_async(Spec("f")));
    CHECK(must(one.get()).id == 3);
    auto get = must(queue.get_async(3));
    CHECK(must(get.get(patience)).id() == 3);
    auto wait = must(queue.wait_async(3));
    CHECK(error_of([&] { return wait.get(1ms); }).code() == WEIR_ETIMEOUT);
    Counter told;
    std::move(wait).then([&](weir::result<Job> job) {
        CHECK(job && job->id() == 3 && job->state() == WEIR_STATE_CANCELLED);
        told.add();
    });
    must(queue.get_async(77)).then([&](weir::result<Job> job) {
        CHECK(!job && job.code() == WEIR_ENOENT);
        told.add();
    });
    DO(queue.cancel(3));
    told.wait_for(2);
    { auto dropped = must(queue.get_async(1)); }        /* its answer is thrown away */
}

static void keeps_schedules()
{
    Queue queue = opened();
    DO(queue.schedule_put(weir::Schedule("report", "30 6 * * 1", Spec("report").data("[1]"))
                              .zone("Europe/Berlin").overlap(WEIR_OVERLAP_SKIP)));
    DO(queue.schedule_put(weir::Schedule("clean", "every 1h", Spec("clean")).paused()));
    auto all = must(queue.schedules());
    CHECK(all.size() == 2 && all[0].name == "clean" && all[0].paused && all[1].type == "report");
    CHECK(all[1].zone == "Europe/Berlin" && all[1].next_at > queue.now());
    auto id = must(queue.schedule_fire("report"));
    CHECK(must(queue.get(id)).data() == "[1]");
    DO(queue.schedule_pause("clean", false));
    CHECK(!must(queue.schedule("clean")).paused);
    DO(queue.schedule_remove("clean"));
    CHECK(error_of([&] { return queue.schedule("clean"); }).code() == WEIR_ENOENT);
    weir::Error why = error_of([&] {
        return queue.schedule_put(weir::Schedule("x", "61 * * * *", Spec("x")));
    });
    CHECK(why.code() == WEIR_EINVAL);
}

static void listens()
{
    Queue                    queue = opened();
    Counter                  n;
    std::mutex               lock;
    std::vector<std::string> seen;
    auto listener = must(queue.listen(weir::Filter().type("e").event(WEIR_EVENT_ENQUEUE)
                                          .event(WEIR_EVENT_COMPLETE), [&](const weir::Event &e) {
        std::lock_guard<std::mutex> guard(lock);
        seen.push_back(e.name() + " " + e.type + " " + e.text);
        n.add();
    }));
    must(queue.process("e", [](Job &) { return "[9]"; }));
    must(queue.add(Spec("other")));
    must(queue.wait(must(queue.add(Spec("e"))).id, patience));
    n.wait_for(2);
    CHECK(seen[0] == "enqueue e " && seen[1] == "complete e [9]");
    /* A listener may go while its function runs, and after its queue. */
    std::unique_ptr<weir::Listener> self;
    Counter                         gone;
    std::unique_lock<std::mutex>    guard(lock);
    self = std::make_unique<weir::Listener>(must(queue.listen({}, [&](const weir::Event &) {
        std::lock_guard<std::mutex> inner(lock);
        self.reset();
        gone.add();
    })));
    guard.unlock();
    must(queue.add(Spec("once")));
    gone.wait_for(1);
    { Queue closed = std::move(queue); }
}

static void talks_on_the_bus()
{
    auto       bus = must(weir::Bus::create());
    Counter    news;
    std::mutex lock;
    std::string last;
    auto hear = [&](weir::Message &m) {
        std::lock_guard<std::mutex> guard(lock);
        last = m.body() + m.header("lang").value_or("?") + m.header("none").value_or("-");
        CHECK(m.address() == "news" && !m.expects_reply());
        news.add();
    };
    auto first = must(bus.consume("news", hear));
    auto second = must(bus.consume("news", hear));
    DO(bus.publish("news", weir::Content("{\"a\":1}").header("lang", "en")));
    news.wait_for(2);
    DO(bus.send("news"));
    news.wait_for(3);
    CHECK(last == "null?-" && news.get() == 3 && first.missed() == 0);

    auto square = must(bus.consume("square", [](weir::Message &m) {
        int n = std::atoi(m.body().c_str());
        if (n < 0)
            DO(m.fail(42, "negative"));
        return std::to_string(n * n);
    }));
    CHECK(must(bus.request("square", "7", patience)).body() == "49");
    weir::Error why = error_of([&] { return bus.request("square", "-1", patience); });
    CHECK(why.code() == WEIR_EREPLY && why.failure() == WEIR_FAILURE_RECIPIENT_FAILURE);
    CHECK(why.failure_code() == 42);
    CHECK(std::string(why.what()).find("negative") != std::string::npos);
    CHECK(error_of([&] { return bus.request("nobody", "1"); }).failure() ==
          WEIR_FAILURE_NO_HANDLERS);
    CHECK(error_of([&] { return bus.send("nobody"); }).code() == WEIR_ENOENT);
}

static void serves_actions()
{
    Queue queue = opened();
    auto  bus = must(weir::Bus::open(queue));
    auto  service = must(bus.service("math", {
        {"twice", [](weir::Message &m) { return "[" + m.body() + "," + m.body() + "]"; }},
#ifdef __cpp_exceptions
        {"throws", [](weir::Message &) -> std::string { throw std::runtime_error("not today"); }},
#endif
    }));
    CHECK(must(bus.call("math", "twice", "{\"x\":1}", patience)).body() == "[{\"x\":1},{\"x\":1}]");
    weir::Error why = error_of([&] { return bus.call("math", "thrice", "{}", patience); });
    CHECK(why.failure_code() == 500);
#ifdef __cpp_exceptions
    why = error_of([&] { return bus.call("math", "throws", "{}", patience); });
    CHECK(std::string(why.what()).find("not today") != std::string::npos);
#endif
    /* A message may be kept and answered later; a consumer outlives bus and queue. */
    weir::Message kept;
    Counter       came;
    auto          late = must(bus.consume("late", [&](weir::Message &m) {
        kept = m.keep();
        came.add();
    }));
    std::string answer;
    std::thread asks([&] { answer = must(bus.request("late", "1", patience)).body(); });
    came.wait_for(1);
    DO(kept.reply("\"here\""));
    asks.join();
    CHECK(answer == "\"here\"");
    kept = weir::Message();
    { auto closed = std::move(bus); }
}

static void a_queue_waits_for_its_handlers()
{
    Counter running;
    bool    finished = false;       /* on this stack: the handler must be over first */
    {
        Queue queue = opened();
        must(queue.process("slow", [&](Job &) {
            running.add();
            std::this_thread::sleep_for(20ms);
            finished = true;
        }));
        must(queue.add(Spec("slow")));
        running.wait_for(1);
    }
    CHECK(finished);
}

int main()
{
    return run_cases({
        {"adds and gets", adds_and_gets},
        {"adds many", adds_many},
        {"says what is wrong", says_what_is_wrong},
        {"handlers answer in every way", handlers_answer_in_every_way},
        {"handlers return texts or nothing", handlers_return_texts_or_nothing},
#ifdef __cpp_exceptions
        {"exceptions fail the job", exceptions_fail_the_job},
#endif
        {"a job may end later", a_job_may_end_later},
        {"takes by hand", takes_by_hand},
        {"changes jobs", changes_jobs},
        {"a handler sees that it is cancelled", a_handler_sees_that_it_is_cancelled},
        {"lists by pages", lists_by_pages},
        {"futures are the answer later", futures_are_the_answer_later},
        {"keeps schedules", keeps_schedules},
        {"listens", listens},
        {"talks on the bus", talks_on_the_bus},
        {"serves actions", serves_actions},
        {"a queue waits for its handlers", a_queue_waits_for_its_handlers},
    });
}
