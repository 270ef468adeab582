/* queue.hpp - Queue: add jobs, have them done, look at them; Pool and Listener. */
#ifndef WEIR_CPP_QUEUE_HPP
#define WEIR_CPP_QUEUE_HPP

#include <atomic>

#include "weir/cpp/future.hpp"
#include "weir/cpp/job.hpp"
#include "weir/cpp/query.hpp"

WEIR_CPP_BEGIN

namespace detail {

/* Where an asynchronous call puts a job. */
struct JobOut {
    JobOut() = default;
    JobOut(JobOut &&other) noexcept : job(std::exchange(other.job, nullptr)) {}
    JobOut &operator=(JobOut &&) = delete;
    ~JobOut() { weir_job_free(job); }
    Job take() { return Job(std::exchange(job, nullptr), true); }

    weir_job *job = nullptr;
};

/* An open queue. Each object that needs the queue open shares it: the last one closes it. */
class Open {
public:
    explicit Open(weir_queue *queue) : q(queue) {}
    Open(const Open &) = delete;
    Open &operator=(const Open &) = delete;
    ~Open()
    {
        stop(nullptr, milliseconds(WEIR_DRAIN_MS), nullptr);
        weir_close(q);
    }

    void hold(std::shared_ptr<void> handler)
    {
        std::lock_guard<std::mutex> guard(lock_);
        handlers_.push_back(std::move(handler));
    }
    void release(const std::shared_ptr<void> &handler)
    {
        std::lock_guard<std::mutex> guard(lock_);
        for (size_t i = 0; i < handlers_.size(); i++)
            if (handlers_[i] == handler) {
                handlers_.erase(handlers_.begin() + static_cast<std::ptrdiff_t>(i));
                break;
            }
    }
    /* After a stop that did not wait for all handlers, some thread may still be in one. */
    void keep_handlers()
    {
        std::lock_guard<std::mutex> guard(lock_);
        for (const std::shared_ptr<void> &handler : handlers_)
            keep_for_good(handler);
    }
    weir_code stop(const char *type, milliseconds timeout, weir_error *err)
    {
        weir_code rc = weir_stop(q, type, timeout.count(), err);
        if (rc == WEIR_ETIMEOUT)
            keep_handlers();
        return rc;
    }

    weir_queue *const q;

private:
    std::mutex                         lock_;
    std::vector<std::shared_ptr<void>> handlers_;       /* of its pools */
};

} /* namespace detail */

/* A handle to a pool. Destroying it does not stop the pool, which ends with its queue. */
class Pool {
public:
    Pool(weir_pool *pool, std::weak_ptr<detail::Open> open, std::shared_ptr<void> handler)
        : pool_(pool), open_(std::move(open)), handler_(std::move(handler))
    {
    }

    /* The rules of Queue::stop(). */
    outcome<void> stop(milliseconds timeout = milliseconds(WEIR_DRAIN_MS))
    {
        weir_error err = {};
        weir_code rc = weir_pool_stop(pool_.get(), timeout.count(), &err);
        if (rc == WEIR_ETIMEOUT)
            detail::keep_for_good(handler_);
        if (auto open = open_.lock())
            open->release(handler_);
        return detail::give(rc, err);
    }
    PoolStats stats() const
    {
        weir_pool_stats s = {};
        weir_pool_get_stats(pool_.get(), &s);
        return {s.started, s.completed, s.failed, s.returned,
                s.running, s.prefetched, s.threads, s.busy};
    }

private:
    struct Free {
        void operator()(weir_pool *p) const { weir_pool_free(p); }
    };
    std::unique_ptr<weir_pool, Free> pool_;
    std::weak_ptr<detail::Open>      open_;
    std::shared_ptr<void>            handler_;
};

/* Listens until it is destroyed. */
class Listener {
public:
    Listener(std::shared_ptr<detail::Open> open, std::shared_ptr<void> fn, weir_listener *l)
        : open_(std::move(open)), fn_(std::move(fn)), listener_(l)
    {
    }

private:
    struct Free {
        void operator()(weir_listener *l) const { weir_unlisten(l); }
    };
    std::shared_ptr<detail::Open>        open_;         /* destroyed last */
    std::shared_ptr<void>                fn_;
    std::unique_ptr<weir_listener, Free> listener_;
};

/* An open queue; move-only. Any number of threads may use it. When it and all taken jobs, listeners
 * and buses of it are gone, its pools stop (their handlers have WEIR_DRAIN_MS to finish) and it is
 * closed. */
class Queue {
public:
    /* The same as a constructor, for result<T>. */
    static outcome<Queue> open(std::string_view url, const Options &options = {})
    {
        weir_queue  *q = nullptr;
        weir_error   err = {};
        weir_options raw = options.raw;
        if (!options.program.empty())
            raw.name = options.program.c_str();
        weir_code rc = weir_open(&q, detail::text(url).c_str(), &raw, &err);
        return detail::give(rc, err, [q] { return Queue(std::make_shared<detail::Open>(q)); });
    }
#ifndef WEIR_NO_EXCEPTIONS
    explicit Queue(std::string_view url, const Options &options = {}) : Queue(open(url, options)) {}
#endif
    Queue(Queue &&) noexcept = default;
    Queue &operator=(Queue &&) noexcept = default;

    weir_queue *c() const { return open_->q; }          /* for the rest of the C API */
    void wake() { weir_wake(c()); }
    moment now() const { return detail::moment_of(weir_now(c())); }

    /* ---- add ---- */

    outcome<Added> add(const Spec &spec)
    {
        weir_error err = {};
        weir_added out = {};
        weir_spec  s = spec.c();
        weir_code  rc = weir_add(c(), &s, &out, &err);
        return detail::give(rc, err, [&] { return detail::added_of(out); });
    }
    outcome<std::vector<Added>> add_many(const std::vector<Spec> &specs)
    {
        weir_error              err = {};
        std::vector<weir_spec>  raw = raw_specs(specs);
        std::vector<weir_added> out(specs.size(), weir_added{});
        weir_code rc = weir_add_many(c(), raw.data(), raw.size(), nullptr, out.data(), &err);
        return detail::give(rc, err, [&] { return all_added(out); });
    }
    outcome<Future<Added>> add_async(const Spec &spec)
    {
        weir_spec s = spec.c();
        return detail::begin<Added>(
            weir_added{},
            [&](weir_added &out, weir_future **f, weir_error *err) {
                return weir_add_async(c(), &s, &out, f, err);
            },
            detail::added_of);
    }
    outcome<Future<std::vector<Added>>> add_many_async(const std::vector<Spec> &specs)
    {
        std::vector<weir_spec> raw = raw_specs(specs);
        return detail::begin<std::vector<Added>>(
            std::vector<weir_added>(specs.size(), weir_added{}),
            [&](std::vector<weir_added> &out, weir_future **f, weir_error *err) {
                return weir_add_many_async(c(), raw.data(), raw.size(), nullptr, out.data(), f,
                                           err);
            },
            all_added);
    }

    /* ---- one job ---- */

    outcome<Job> get(uint64_t id)
    {
        weir_error err = {};
        weir_job  *job = nullptr;
        weir_code  rc = weir_get(c(), id, &job, &err);
        return detail::give(rc, err, [&] { return Job(job, true); });
    }
    outcome<Future<Job>> get_async(uint64_t id)
    {
        return detail::begin<Job>(
            detail::JobOut(),
            [&](detail::JobOut &out, weir_future **f, weir_error *err) {
                return weir_get_async(c(), id, &out.job, f, err);
            },
            [](detail::JobOut &out) { return out.take(); });
    }
    outcome<bool> exists(uint64_t id)
    {
        weir_error err = {};
        bool       out = false;
        weir_code  rc = weir_exists(c(), id, &out, &err);
        return detail::give(rc, err, [&] { return out; });
    }
    /* Until it is complete, failed or cancelled: the job as it is then. */
    outcome<Job> wait(uint64_t id, milliseconds timeout = forever)
    {
        weir_error err = {};
        weir_job  *job = nullptr;
        weir_code  rc = weir_wait(c(), id, timeout.count(), &job, &err);
        return detail::give(rc, err, [&] { return Job(job, true); });
    }
    outcome<Future<Job>> wait_async(uint64_t id)
    {
        return detail::begin<Job>(
            detail::JobOut(),
            [&](detail::JobOut &out, weir_future **f, weir_error *err) {
                return weir_wait_async(c(), id, &out.job, f, err);
            },
            [](detail::JobOut &out) { return out.take(); });
    }
    outcome<void> update(uint64_t id, const Change &change)
    {
        weir_change raw = change.c();
        return call([&](weir_error *err) { return weir_update(c(), id, &raw, nullptr, err); });
    }
    /* Set one value of a job; `json` "" removes it. */
    outcome<void> set(uint64_t id, std::string_view name, std::string_view json)
    {
        std::string value = detail::text(json);
        return call([&](weir_error *err) {
            return weir_set(c(), id, detail::text(name).c_str(), detail::or_null(value), err);
        });
    }
    outcome<void> retry(uint64_t id)
    {
        return call([&](weir_error *err) { return weir_retry(c(), id, err); });
    }
    outcome<void> promote(uint64_t id)
    {
        return call([&](weir_error *err) { return weir_promote(c(), id, err); });
    }
    outcome<void> cancel(uint64_t id)
    {
        return call([&](weir_error *err) { return weir_cancel(c(), id, err); });
    }
    outcome<void> remove(uint64_t id)
    {
        return call([&](weir_error *err) { return weir_remove(c(), id, err); });
    }

    /* ---- log ---- */

    outcome<void> log(uint64_t id, std::string_view line)
    {
        std::string text = detail::text(line);
        return call([&](weir_error *err) {
            return weir_log(c(), id, 0, text.c_str(), text.size(), err);
        });
    }
    outcome<std::vector<Line>> logs(uint64_t id, uint64_t after = 0, size_t limit = 0)
    {
        weir_error  err = {};
        weir_lines *out = nullptr;
        weir_code   rc = weir_logs(c(), id, after, limit, &out, &err);
        detail::Owned<weir_lines> owned(out);
        return detail::give(rc, err, [&] {
            std::vector<Line> lines;
            for (size_t i = 0; i < out->n; i++)
                lines.push_back({out->line[i].n, detail::moment_of(out->line[i].at),
                                 detail::copy(out->line[i].text)});
            return lines;
        });
    }

    /* ---- lists and counts ---- */

    outcome<Page> list(const Query &query = {})
    {
        weir_error err = {};
        weir_page *out = nullptr;
        weir_query raw = query.c();
        weir_code  rc = weir_list(c(), &raw, &out, &err);
        detail::Owned<weir_page> owned(out);
        return detail::give(rc, err, [&] {
            Page page;
            page.more = out->more;
            page.next = out->next;
            for (size_t i = 0; i < out->n; i++)
                page.jobs.emplace_back(std::exchange(out->job[i], nullptr), true);
            return page;
        });
    }
    outcome<uint64_t> count(weir_state state = WEIR_STATE_ANY, std::string_view type = {})
    {
        weir_error  err = {};
        uint64_t    n = 0;
        std::string t = detail::text(type);
        weir_code   rc = weir_count(c(), state, detail::or_null(t), &n, &err);
        return detail::give(rc, err, [&] { return n; });
    }
    outcome<Stats> stats()
    {
        weir_error  err = {};
        weir_stats *out = nullptr;
        weir_code   rc = weir_get_stats(c(), &out, &err);
        return detail::give(rc, err, [&] { return Stats(out); });
    }
    /* Does the store answer, and could it keep a change now? */
    outcome<void> ready()
    {
        return call([&](weir_error *err) { return weir_ready(c(), err); });
    }
    outcome<void> pause(std::string_view type)
    {
        return call([&](weir_error *e) { return weir_pause(c(), detail::text(type).c_str(), e); });
    }
    outcome<void> resume(std::string_view type)
    {
        return call([&](weir_error *e) { return weir_resume(c(), detail::text(type).c_str(), e); });
    }

    /* ---- schedules ---- */

    outcome<void> schedule_put(const Schedule &schedule)
    {
        weir_schedule raw = schedule.c();
        return call([&](weir_error *err) { return weir_schedule_put(c(), &raw, err); });
    }
    outcome<void> schedule_remove(std::string_view name)
    {
        return call([&](weir_error *err) {
            return weir_schedule_remove(c(), detail::text(name).c_str(), err);
        });
    }
    outcome<void> schedule_pause(std::string_view name, bool paused = true)
    {
        return call([&](weir_error *err) {
            return weir_schedule_pause(c(), detail::text(name).c_str(), paused, err);
        });
    }
    /* Add its job now: the id. */
    outcome<uint64_t> schedule_fire(std::string_view name)
    {
        weir_error err = {};
        uint64_t   id = 0;
        weir_code  rc = weir_schedule_fire(c(), detail::text(name).c_str(), &id, &err);
        return detail::give(rc, err, [&] { return id; });
    }
    outcome<ScheduleInfo> schedule(std::string_view name)
    {
        weir_error      err = {};
        weir_schedules *out = nullptr;
        weir_code       rc = weir_schedule_get(c(), detail::text(name).c_str(), &out, &err);
        detail::Owned<weir_schedules> owned(out);
        return detail::give(rc, err, [&] { return info_of(out->schedule[0]); });
    }
    /* Those behind the name `after`, in the order of names, at most WEIR_MAX_PAGE. */
    outcome<std::vector<ScheduleInfo>> schedules(std::string_view after = {})
    {
        weir_error      err = {};
        weir_schedules *out = nullptr;
        std::string     from = detail::text(after);
        weir_code rc = weir_schedules_list(c(), detail::or_null(from), 0, &out, &err);
        detail::Owned<weir_schedules> owned(out);
        return detail::give(rc, err, [&] {
            std::vector<ScheduleInfo> all;
            for (size_t i = 0; i < out->n; i++)
                all.push_back(info_of(out->schedule[i]));
            return all;
        });
    }

    /* ---- work ---- */

    /* Have jobs done by handler(Job &), on threads of a pool. It answers with the result as JSON
     * (a string; nothing: none), or with what job.done(), fail(), give_up(), give_back() answer,
     * or weir::later; an exception fails the job with its text. */
    template <class F>
    outcome<Pool> process(std::string_view type, const PoolOptions &options, F handler)
    {
        return process_types({std::string(type)}, options, std::move(handler));
    }
    template <class F>
    outcome<Pool> process(std::string_view type, F handler)
    {
        return process_types({std::string(type)}, PoolOptions(), std::move(handler));
    }
    /* Of several types, the best job of all of them first. */
    template <class F>
    outcome<Pool> process_types(const std::vector<std::string> &types, const PoolOptions &options,
                                F handler)
    {
        struct Handler : std::enable_shared_from_this<Handler> {
            explicit Handler(F f) : fn(std::move(f)) {}
            F fn;
        };
        auto                      held = std::make_shared<Handler>(std::move(handler));
        std::vector<std::string>  texts;
        std::vector<const char *> list = c_list(types, texts);
        weir_pool_config          config = options.raw;
        config.types = list.data();
        config.ctx = held.get();
        config.handler = [](weir_job *raw, void *ctx) noexcept -> weir_code {
            std::shared_ptr<Handler> running = static_cast<Handler *>(ctx)->shared_from_this();
            Job                      job(raw, false);
            return detail::handle_safely(running->fn, job);
        };
        weir_error err = {};
        weir_pool *pool = nullptr;
        open_->hold(held);
        weir_code rc = weir_process(c(), nullptr, &config, &pool, &err);
        if (rc)
            open_->release(held);
        return detail::give(rc, err, [&] { return Pool(pool, open_, held); });
    }

    /* Take jobs by hand, best first, at most `n`; end each with done(), fail() or give_back(). */
    outcome<std::vector<Job>> take(const std::vector<std::string> &types, size_t n,
                                   milliseconds lease = {})
    {
        std::vector<std::string>  texts;
        std::vector<const char *> list = c_list(types, texts);
        weir_taking               what = {};
        what.types = list.data();
        what.n = n;
        what.lease_ms = lease.count();
        weir_error              err = {};
        std::vector<weir_job *> out(n < WEIR_MAX_PAGE ? n + 1 : WEIR_MAX_PAGE + 1);
        size_t                  got = 0;
        weir_code               rc = weir_take(c(), &what, out.data(), &got, &err);
        return detail::give(rc, err, [&] {
            std::vector<Job> jobs;
            for (size_t i = 0; i < got; i++)
                jobs.emplace_back(out[i], true, open_);
            return jobs;
        });
    }
    /* One job; none waits: an empty Job. */
    outcome<Job> take(std::string_view type, milliseconds lease = {})
    {
        auto jobs = take({std::string(type)}, 1, lease);
#ifdef WEIR_NO_EXCEPTIONS
        if (!jobs)
            return jobs.error();
        return jobs->empty() ? Job() : std::move(jobs->front());
#else
        return jobs.empty() ? Job() : std::move(jobs.front());
#endif
    }

    /* Stop the pools of a type ("": all): their handlers may finish for `timeout`. */
    outcome<void> stop(std::string_view type = {},
                       milliseconds timeout = milliseconds(WEIR_DRAIN_MS))
    {
        std::string t = detail::text(type);
        return call([&](weir_error *err) { return open_->stop(detail::or_null(t), timeout, err); });
    }
    /* Work until SIGTERM or SIGINT, then stop all pools. */
    outcome<void> run()
    {
        weir_error err = {};
        int        status = weir_run(c(), &err);
        if (status)
            open_->keep_handlers();
        if (status && !err.code)
            weir_fail(&err, WEIR_EIO, "the pools did not stop well");
        return detail::give(status ? err.code : WEIR_OK, err);
    }

    /* ---- events ---- */

    /* Have fn(const Event &) called, until the Listener is destroyed. It must not throw. */
    template <class F>
    outcome<Listener> listen(const Filter &filter, F fn)
    {
        struct Subscriber : std::enable_shared_from_this<Subscriber> {
            explicit Subscriber(F f) : call(std::move(f)) {}
            F call;
        };
        auto           held = std::make_shared<Subscriber>(std::move(fn));
        weir_error     err = {};
        weir_listener *listener = nullptr;
        weir_filter    raw = filter.c();
        weir_code rc = weir_listen(c(), &raw, [](const weir_event *e, void *ctx) noexcept {
            auto running = static_cast<Subscriber *>(ctx)->shared_from_this();
            running->call(Event{e->kind, e->state, e->id, detail::copy(e->type),
                                detail::moment_of(e->at), e->attempts, e->progress, e->delivery,
                                e->missed, detail::copy(e->text, e->text_len)});
        }, held.get(), &listener, &err);
        return detail::give(rc, err, [&] { return Listener(open_, held, listener); });
    }

private:
    friend class Bus;
    explicit Queue(std::shared_ptr<detail::Open> open) : open_(std::move(open)) {}

    template <class F>
    outcome<void> call(F f)
    {
        weir_error err = {};
        weir_code  rc = f(&err);
        return detail::give(rc, err);
    }
    static std::vector<weir_spec> raw_specs(const std::vector<Spec> &specs)
    {
        std::vector<weir_spec> raw;
        for (const Spec &spec : specs)
            raw.push_back(spec.c());
        return raw;
    }
    static std::vector<Added> all_added(const std::vector<weir_added> &out)
    {
        std::vector<Added> all;
        for (const weir_added &a : out)
            all.push_back(detail::added_of(a));
        return all;
    }
    static std::vector<const char *> c_list(const std::vector<std::string> &from,
                                            std::vector<std::string> &texts)
    {
        std::vector<const char *> list;
        for (const std::string &s : from)
            texts.push_back(detail::text(s));
        for (const std::string &s : texts)
            list.push_back(s.c_str());
        list.push_back(nullptr);
        return list;
    }
    static ScheduleInfo info_of(const weir_schedule &s)
    {
        return {detail::copy(s.name), detail::copy(s.when), detail::copy(s.zone),
                detail::copy(s.job.type), s.paused, detail::moment_of(s.next_at),
                detail::moment_of(s.last_at), s.last_job, s.fired};
    }

    std::shared_ptr<detail::Open> open_;
};

WEIR_CPP_END
#endif
