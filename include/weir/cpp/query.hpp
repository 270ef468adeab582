/* query.hpp - what a Queue is asked, and its answers: options, pages, statistics, schedules. */
#ifndef WEIR_CPP_QUERY_HPP
#define WEIR_CPP_QUERY_HPP

#include "weir/cpp/job.hpp"

WEIR_CPP_BEGIN

/* As weir_options. `raw` has what has no function here. */
struct Options {
    weir_options raw = {};
    std::string  program;

    Options &durability(weir_durability d) { raw.durability = d; return *this; }
    Options &read_only(bool yes = true) { raw.read_only = yes; return *this; }
    Options &wait_owner(milliseconds d) { raw.wait_owner_ms = d.count(); return *this; }
    Options &name(std::string_view n) { program = detail::text(n); return *this; }
};

/* As weir_pool_config. */
struct PoolOptions {
    weir_pool_config raw = {};

    PoolOptions &threads(int32_t n) { raw.threads = n; return *this; }
    PoolOptions &running(int32_t n) { raw.running = n; return *this; }
    PoolOptions &prefetch(int32_t n) { raw.prefetch = n; return *this; }
    PoolOptions &lease(milliseconds d) { raw.lease_ms = d.count(); return *this; }
};

struct PoolStats {
    uint64_t started, completed, failed, returned;
    uint32_t running, prefetched, threads, busy;
};

struct Added {
    uint64_t        id = 0;
    weir_state      state = WEIR_STATE_ANY;
    bool            existed = false;
    weir_durability durability = WEIR_DURABILITY_DEFAULT;
};

namespace detail {
inline Added added_of(const weir_added &a) { return {a.id, a.state, a.existed, a.durability}; }
} /* namespace detail */

/* Which jobs: as weir_query. */
struct Query {
    weir_query  raw = {};
    std::string type_, search_;

    Query &state(weir_state s) { raw.states |= WEIR_BIT(s); return *this; }     /* or this one */
    Query &type(std::string_view t) { type_ = detail::text(t); return *this; }
    Query &search(std::string_view words) { search_ = detail::text(words); return *this; }
    Query &priority(int32_t n) { raw.by_priority = true; raw.priority = n; return *this; }
    Query &since(moment at) { raw.since = detail::ms_of(at); return *this; }
    Query &until(moment at) { raw.until = detail::ms_of(at); return *this; }
    Query &sort(weir_sort by) { raw.sort = by; return *this; }
    Query &descending(bool yes = true) { raw.descending = yes; return *this; }
    Query &after(weir_cursor next) { raw.after = next; return *this; }
    Query &limit(size_t n) { raw.limit = n; return *this; }
    weir_query c() const
    {
        weir_query q = raw;
        q.type = detail::or_null(type_);
        q.search = detail::or_null(search_);
        return q;
    }
};

struct Page {
    std::vector<Job> jobs;
    bool             more = false;
    weir_cursor      next = {};         /* for Query::after() */
};

/* What to change: as weir_change. */
struct Change {
    weir_change raw = {};
    std::string data_, values_;

    Change &priority(int32_t n) { raw.set_priority = true; raw.priority = n; return *this; }
    Change &delay(milliseconds d) { raw.set_delay = true; raw.delay_ms = d.count(); return *this; }
    Change &run_at(moment at) { raw.run_at = detail::ms_of(at); return *this; }
    Change &data(std::string_view json) { data_ = detail::text(json); return *this; }
    Change &values(std::string_view json) { values_ = detail::text(json); return *this; }
    Change &state(weir_state s) { raw.state = s; return *this; }
    weir_change c() const
    {
        weir_change change = raw;
        change.data = detail::or_null(data_);
        change.values = detail::or_null(values_);
        return change;
    }
};

struct Line {
    uint64_t    n;
    moment      at;
    std::string text;
};

/* Counts by type, as weir_stats. Move-only. */
class Stats {
public:
    explicit Stats(weir_stats *s) : s_(s) {}
    const weir_stats *c() const { return s_.get(); }

    uint64_t last_id() const { return s_->last_id; }
    std::vector<std::string> types() const
    {
        std::vector<std::string> names;
        for (size_t i = 0; i < s_->n; i++)
            names.push_back(s_->type[i].type);
        return names;
    }
    /* Jobs of a type in a state; WEIR_STATE_ANY, "": all. */
    uint64_t count(weir_state state, std::string_view type = {}) const
    {
        const weir_type_stats *t = find(type);
        return t ? t->count[state] : 0;
    }
    uint64_t completed(std::string_view type = {}) const       /* executions, ever */
    {
        const weir_type_stats *t = find(type);
        return t ? t->completed : 0;
    }
    uint64_t failed(std::string_view type = {}) const
    {
        const weir_type_stats *t = find(type);
        return t ? t->failed : 0;
    }
    bool paused(std::string_view type = {}) const
    {
        const weir_type_stats *t = find(type);
        return t && t->paused;
    }
    std::string json() const { return detail::adopt(weir_stats_json(s_.get(), nullptr)); }

private:
    const weir_type_stats *find(std::string_view type) const
    {
        if (type.empty() || type == "*")
            return &s_->all;
        for (size_t i = 0; i < s_->n; i++)
            if (type == s_->type[i].type)
                return &s_->type[i];
        return nullptr;
    }
    detail::Owned<weir_stats> s_;
};

/* A schedule to put: as weir_schedule. */
class Schedule {
public:
    Schedule(std::string_view name, std::string_view when, Spec job)
        : name_(detail::text(name)), when_(detail::text(when)), job_(std::move(job))
    {
    }
    Schedule &zone(std::string_view z) { zone_ = detail::text(z); return *this; }
    Schedule &except(std::string_view dates) { except_ = detail::text(dates); return *this; }
    Schedule &start_at(moment at) { raw_.start_at = detail::ms_of(at); return *this; }
    Schedule &end_at(moment at) { raw_.end_at = detail::ms_of(at); return *this; }
    Schedule &jitter(milliseconds d) { raw_.jitter_ms = d.count(); return *this; }
    Schedule &missed(weir_missed_kind kind, int32_t limit = 0)
    {
        raw_.missed = kind;
        raw_.missed_limit = limit;
        return *this;
    }
    Schedule &overlap(weir_overlap_kind kind) { raw_.overlap = kind; return *this; }
    Schedule &paused(bool yes = true) { raw_.paused = yes; return *this; }
    weir_schedule c() const
    {
        weir_schedule s = raw_;
        s.name = name_.c_str();
        s.when = when_.c_str();
        s.zone = detail::or_null(zone_);
        s.except = detail::or_null(except_);
        s.job = job_.c();
        return s;
    }

private:
    weir_schedule raw_ = {};
    std::string   name_, when_, zone_, except_;
    Spec          job_;
};

/* A schedule of the store. */
struct ScheduleInfo {
    std::string name, when, zone, type;
    bool        paused;
    moment      next_at;                /* 0: there is none */
    moment      last_at;
    uint64_t    last_job;               /* 0: none yet */
    int64_t     fired;
};

/* What to listen to: as weir_filter. */
struct Filter {
    weir_filter raw = {};
    std::string type_;

    Filter &id(uint64_t n) { raw.id = n; return *this; }
    Filter &type(std::string_view t) { type_ = detail::text(t); return *this; }
    Filter &event(weir_event_kind kind) { raw.events |= WEIR_BIT(kind); return *this; }
    weir_filter c() const
    {
        weir_filter f = raw;
        f.type = detail::or_null(type_);
        return f;
    }
};

struct Event {
    weir_event_kind kind;
    weir_state      state;
    uint64_t        id;
    std::string     type;
    moment          at;
    int32_t         attempts, progress;
    uint32_t        delivery, missed;
    std::string     text;

    std::string name() const { return weir_event_name(kind); }
};

WEIR_CPP_END
#endif
