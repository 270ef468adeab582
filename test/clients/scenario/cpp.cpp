/* cpp.cpp - test/clients/scenario.md with the C++ wrapper. */
#include "../../cpp/tap.hpp"

#include <iostream>
#include <set>

using weir::Job;
using weir::Query;
using weir::Spec;
using namespace std::chrono_literals;

static weir::Queue *queue;
static weir::Bus   *bus;
static Counter      seen, cancelled, heard_a, heard_b;

template <class F>
static void until(F what)
{
    auto end = std::chrono::steady_clock::now() + patience;
    while (!what()) {
        CHECK(std::chrono::steady_clock::now() < end);
        std::this_thread::sleep_for(5ms);
    }
}

/* A call, repeated while the server is away. */
template <class F>
static auto again(F call) -> decltype(call())
{
    auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
        try {
            return call();
        } catch (const weir::Error &why) {
            if (std::chrono::steady_clock::now() > end)
                throw;
            std::this_thread::sleep_for(20ms);
        }
    }
}

static void start_workers()
{
    auto two = weir::PoolOptions().threads(2);
    queue->process("sum", two, [](Job &job) {
        return std::to_string(job.data_int("a", 0) + job.data_int("b", 0));
    });
    queue->process("flaky", two, [](Job &job) {
        if (job.delivery() == 1)
            throw std::runtime_error("not yet");
    });
    queue->process("slow", two, [](Job &job) {
        job.progress(1, 4);
        job.log("a quarter");
        seen.wait_for(1);
    });
    queue->process("endless", two, [](Job &job) {
        job.progress(1, 2);
        until([&] { return job.cancelled(); });
        cancelled.add();
    });
}

static void add()
{
    const std::string data = R"({"to":"ann","n":[1,2.5,"ä"]})";
    Spec spec = Spec("first").data(data).priority(WEIR_PRIORITY_HIGH).attempts(3).unique("u");
    auto added = queue->add(spec);
    Job  job = queue->get(added.id);
    CHECK(job.data() == data && job.priority() == -10 && job.max_attempts() == 3);
    CHECK(job.state() == WEIR_STATE_INACTIVE);
    auto same = queue->add(spec);
    CHECK(same.id == added.id && same.existed);
}

static void bulk()
{
    std::set<uint64_t> ids;
    for (auto &added : queue->add_many(std::vector<Spec>(100, Spec("bulk"))))
        ids.insert(added.id);
    CHECK(ids.size() == 100);
    auto query = Query().type("bulk").state(WEIR_STATE_INACTIVE).limit(1000);
    CHECK(queue->list(query).jobs.size() == 100);
}

static void wait()
{
    auto id = queue->add(Spec("first")).id;
    CHECK(error_of([&] { return queue->wait(id, 50ms); }).code() == WEIR_ETIMEOUT);
}

static void work()
{
    std::vector<uint64_t> ids;
    for (int i = 0; i < 10; i++)
        ids.push_back(queue->add(Spec("sum").data("{\"a\":" + std::to_string(i) + ",\"b\":1}")).id);
    for (int i = 0; i < 10; i++) {
        Job job = queue->wait(ids[static_cast<size_t>(i)], patience);
        CHECK(job.state() == WEIR_STATE_COMPLETE && job.result() == std::to_string(i + 1));
    }
}

static void fail_and_retry()
{
    Job job = queue->wait(queue->add(Spec("flaky").attempts(2)).id, patience);
    CHECK(job.state() == WEIR_STATE_COMPLETE && job.attempts() == 2);
    auto id = queue->add(Spec("flaky")).id;
    job = queue->wait(id, patience);
    CHECK(job.state() == WEIR_STATE_FAILED && job.error() == "not yet");
    queue->retry(id);
    CHECK(queue->wait(id, patience).state() == WEIR_STATE_COMPLETE);
}

static void progress()
{
    auto id = queue->add(Spec("slow")).id;
    until([&] { return queue->get(id).progress() == 25; });
    until([&] {
        auto lines = queue->logs(id);
        return lines.size() == 1 && lines[0].text == "a quarter";
    });
    seen.add();
    CHECK(queue->wait(id, patience).state() == WEIR_STATE_COMPLETE);
}

static void cancel()
{
    auto id = queue->add(Spec("endless")).id;
    until([&] { return queue->get(id).progress() == 50; });
    queue->cancel(id);
    cancelled.wait_for(1);
    CHECK(queue->get(id).state() == WEIR_STATE_CANCELLED);
    id = queue->add(Spec("first").delay(1h)).id;
    queue->cancel(id);
    CHECK(queue->get(id).state() == WEIR_STATE_CANCELLED);
}

static void schedule()
{
    queue->schedule_put(weir::Schedule("nightly", "0 3 * * *", Spec("night")));
    CHECK(queue->get(queue->schedule_fire("nightly")).type() == "night");
    CHECK(queue->schedule("nightly").next_at > queue->now());
    queue->schedule_remove("nightly");
    CHECK(error_of([] { return queue->schedule("nightly"); }).code() == WEIR_ENOENT);
}

static void talk()
{
    CHECK(bus->request("double", "21", patience).body() == "42");
    auto a = bus->consume("news", [](weir::Message &) { heard_a.add(); });
    auto b = bus->consume("news", [](weir::Message &) { heard_b.add(); });
    bus->publish("news", "\"!\"");
    heard_a.wait_for(1);
    heard_b.wait_for(1);
    CHECK(error_of([] { return bus->request("nobody"); }).failure() == WEIR_FAILURE_NO_HANDLERS);
}

static void reconnect()
{
    auto id = queue->add(Spec("stays")).id;
    std::cout << "# restart" << std::endl;
    std::string line;
    CHECK(std::getline(std::cin, line));
    CHECK(again([&] { return queue->get(id); }).type() == "stays");
    auto sum = again([&] { return queue->add(Spec("sum").data(R"({"a":1,"b":2})")).id; });
    CHECK(again([&] { return queue->wait(sum, patience); }).result() == "3");
    CHECK(again([&] { return bus->request("double", "4", 2s); }).body() == "8");
}

int main() try {
    weir::Queue open(std::getenv("WEIR_STORE"));
    weir::Bus   talking(open);
    queue = &open;
    bus = &talking;
    auto doubles = talking.consume("double", [](weir::Message &m) {
        return std::to_string(2 * std::stoi(m.body()));
    });
    start_workers();
    return run_cases({
        {"add", add},
        {"bulk", bulk},
        {"wait", wait},
        {"work", work},
        {"fail and retry", fail_and_retry},
        {"progress", progress},
        {"cancel", cancel},
        {"schedule", schedule},
        {"talk", talk},
        {"reconnect", reconnect},
    });
} catch (const weir::Error &why) {
    std::printf("Bail out! %s\n", why.what());
    return why.complain();
}
