/* job.hpp - Spec, what to add; Job, one that was read, taken, or given to a handler. */
#ifndef WEIR_CPP_JOB_HPP
#define WEIR_CPP_JOB_HPP

#include "weir/cpp/base.hpp"

WEIR_CPP_BEGIN

/* What to add: as weir_spec, with a function for each member. Texts are copied. */
class Spec {
public:
    explicit Spec(std::string_view type) : type_(detail::text(type)) {}

    Spec &data(std::string_view json) { data_ = detail::text(json); return *this; }
    Spec &priority(int32_t n) { raw_.priority = n; return *this; }
    Spec &attempts(int32_t n) { raw_.attempts = n; return *this; }
    Spec &delay(milliseconds d) { raw_.delay_ms = d.count(); return *this; }
    Spec &run_at(moment at) { raw_.run_at = detail::ms_of(at); return *this; }
    Spec &backoff(weir_backoff_kind kind, milliseconds d = {}, milliseconds cap = {},
                  int32_t jitter_pct = 0)
    {
        raw_.backoff = {kind, d.count(), cap.count(), jitter_pct};
        return *this;
    }
    Spec &ttl(milliseconds d) { raw_.ttl_ms = d.count(); return *this; }
    Spec &deadline_at(moment at) { raw_.deadline_at = detail::ms_of(at); return *this; }
    Spec &unique(std::string_view key) { unique_ = detail::text(key); return *this; }
    Spec &max_lost(int32_t n) { raw_.max_lost = n; return *this; }
    Spec &remove_on_complete(bool yes = true) { raw_.remove_on_complete = yes; return *this; }
    Spec &search(bool yes = true) { raw_.search = yes; return *this; }
    Spec &search_keys(std::string_view keys) { search_keys_ = detail::text(keys); return *this; }
    Spec &values(std::string_view json) { values_ = detail::text(json); return *this; }

    /* For the C API; valid as long as this Spec does not change. */
    weir_spec c() const
    {
        weir_spec s = raw_;
        s.type = type_.c_str();
        s.data = detail::or_null(data_);
        s.unique = detail::or_null(unique_);
        s.search_keys = detail::or_null(search_keys_);
        s.values = detail::or_null(values_);
        return s;
    }

private:
    weir_spec   raw_ = {};
    std::string type_, data_, unique_, search_keys_, values_;
};

/* How a handler has ended its job: what done(), fail() and others answer, to be returned. */
struct Ended {
    weir_code code;
};

/* For a handler that ends its job after it has returned. */
constexpr Ended later{WEIR_LATER};

/* One job. Move-only. Texts that are not there are "". A job that a handler got is valid until the
 * handler returns, or until it is ended if that returns weir::later: move it out then. */
class Job {
public:
    Job() = default;
    /* `keep` is what must stay as long as the job is used; a borrowed job is not freed. */
    Job(weir_job *job, bool owned, std::shared_ptr<void> keep = nullptr)
        : keep_(std::move(keep)), job_(job), owned_(owned)
    {
    }
    Job(Job &&other) noexcept
        : keep_(std::move(other.keep_)), job_(std::exchange(other.job_, nullptr)),
          owned_(other.owned_)
    {
    }
    Job &operator=(Job &&other) noexcept
    {
        if (this != &other) {
            release();
            keep_ = std::move(other.keep_);
            job_ = std::exchange(other.job_, nullptr);
            owned_ = other.owned_;
        }
        return *this;
    }
    ~Job() { release(); }

    explicit operator bool() const noexcept { return job_; }        /* false: there is none */
    weir_job *c() const noexcept { return job_; }

    uint64_t id() const { return job_->id; }
    std::string type() const { return detail::copy(job_->type); }
    weir_state state() const { return job_->state; }
    std::string state_name() const { return weir_state_name(job_->state); }
    int32_t priority() const { return job_->priority; }
    std::string data() const { return detail::copy(job_->data, job_->data_len); }
    std::string result() const { return detail::copy(job_->result, job_->result_len); }
    std::string error() const { return detail::copy(job_->error); }
    std::string values() const { return detail::copy(job_->values, job_->values_len); }
    int32_t progress() const { return job_->progress; }
    std::string progress_data() const
    {
        return detail::copy(job_->progress_data, job_->progress_data_len);
    }
    std::string unique() const { return detail::copy(job_->unique); }
    std::string worker() const { return detail::copy(job_->worker); }
    int32_t attempts() const { return job_->attempts; }
    int32_t max_attempts() const { return job_->max_attempts; }
    uint32_t delivery() const { return job_->delivery; }
    int32_t lost() const { return job_->lost; }
    milliseconds delay() const { return milliseconds(job_->delay_ms); }
    milliseconds duration() const { return milliseconds(job_->duration_ms); }
    moment created_at() const { return detail::moment_of(job_->created_at); }
    moment promote_at() const { return detail::moment_of(job_->promote_at); }
    moment started_at() const { return detail::moment_of(job_->started_at); }
    moment finished_at() const { return detail::moment_of(job_->finished_at); }

    /* All of it as one JSON object. */
    std::string json() const { return detail::adopt(weir_job_json(job_, nullptr)); }

    /* Single members of data, and values, without a JSON library: weir/data.h. */
    int64_t data_int(std::string_view path, int64_t otherwise) const
    {
        return weir_data_int(job_, detail::text(path).c_str(), otherwise);
    }
    double data_number(std::string_view path, double otherwise) const
    {
        return weir_data_number(job_, detail::text(path).c_str(), otherwise);
    }
    bool data_bool(std::string_view path, bool otherwise) const
    {
        return weir_data_bool(job_, detail::text(path).c_str(), otherwise);
    }
    std::string data_text(std::string_view path, std::string_view otherwise) const
    {
        const char *s = weir_data_text(job_, detail::text(path).c_str(), nullptr);
        return s ? std::string(s) : std::string(otherwise);
    }
    int64_t value_int(std::string_view name, int64_t otherwise) const
    {
        return weir_value_int(job_, detail::text(name).c_str(), otherwise);
    }
    std::string value_text(std::string_view name, std::string_view otherwise) const
    {
        const char *s = weir_value_text(job_, detail::text(name).c_str(), nullptr);
        return s ? std::string(s) : std::string(otherwise);
    }

    /* ---- in a handler, or with a job from Queue::take() ---- */

    /* End it. `result` is JSON; "": none. */
    outcome<Ended> done(std::string_view result = {})
    {
        weir_error err = {};
        std::string json = detail::text(result);
        weir_code rc = weir_job_done(job_, detail::or_null(json), json.size(), &err);
        return detail::give(rc, err, [] { return Ended{WEIR_OK}; });
    }
    outcome<Ended> fail(std::string_view why) { return ended(weir_job_fail, why); }
    outcome<Ended> give_up(std::string_view why) { return ended(weir_job_give_up, why); }
    /* Not now: again after `delay`, without using an attempt (weir_job_return()). */
    outcome<Ended> give_back(milliseconds delay = {})
    {
        weir_error err = {};
        weir_code rc = weir_job_return(job_, delay.count(), &err);
        return detail::give(rc, err, [] { return Ended{WEIR_OK}; });
    }

    outcome<void> log(std::string_view line)
    {
        return said(weir_job_log(job_, "%.*s", static_cast<int>(line.size()), line.data()));
    }
    outcome<void> progress(int64_t done, int64_t total, std::string_view data = {})
    {
        weir_error err = {};
        std::string json = detail::text(data);
        return detail::give(weir_job_progress(job_, done, total, detail::or_null(json), json.size(),
                                              &err), err);
    }
    /* Set one value; `json` "" removes it. */
    outcome<void> set(std::string_view name, std::string_view json)
    {
        weir_error err = {};
        std::string value = detail::text(json);
        return detail::give(weir_job_set(job_, detail::text(name).c_str(), detail::or_null(value),
                                         &err), err);
    }
    bool cancelled() const { return weir_job_cancelled(job_); }
    outcome<void> renew(milliseconds lease)
    {
        weir_error err = {};
        return detail::give(weir_job_renew(job_, lease.count(), &err), err);
    }

private:
    void release()
    {
        if (owned_)
            weir_job_free(job_);
        job_ = nullptr;
    }
    static outcome<void> said(weir_code rc)
    {
        weir_error err = {};
        if (rc)
            weir_fail(&err, rc, "%s", weir_code_text(rc));
        return detail::give(rc, err);
    }
    outcome<Ended> ended(weir_code (*end)(weir_job *, const char *, ...), std::string_view why)
    {
        weir_error err = {};
        weir_code rc = end(job_, "%.*s", static_cast<int>(why.size()), why.data());
        if (rc == WEIR_EJOB)
            return outcome<Ended>(Ended{WEIR_EJOB});
        weir_fail(&err, rc, "%s", weir_code_text(rc));
        return detail::failed<Ended>(Error(err));
    }

    std::shared_ptr<void> keep_;
    weir_job             *job_ = nullptr;
    bool                  owned_ = false;
};

namespace detail {

/* ---- what a handler answers, as a code ---- */

inline weir_code answer(Job &, Ended ended) { return ended.code; }
inline weir_code answer(Job &, weir_code code) { return code; }
inline weir_code answer(Job &job, std::string_view json)
{
    std::string copied = text(json);
    return copied.empty() ? WEIR_OK
                          : weir_job_done(job.c(), copied.c_str(), copied.size(), nullptr);
}
template <class T>
weir_code answer(Job &job, result<T> r)
{
    if (!r)
        return weir_job_fail(job.c(), "%s", r.error().what());
    if constexpr (std::is_void_v<T>)
        return WEIR_OK;
    else
        return answer(job, std::move(r.value()));
}

template <class F>
weir_code handle(F &f, Job &job)
{
    if constexpr (std::is_void_v<std::invoke_result_t<F &, Job &>>) {
        f(job);
        return WEIR_OK;
    } else {
        return answer(job, f(job));
    }
}

/* The same; an exception fails the job with its text. */
template <class F>
weir_code handle_safely(F &f, Job &job) noexcept
{
#ifdef __cpp_exceptions
    weir_job *c = job.c();      /* the handler may have moved the job away */
    try {
        return handle(f, job);
    } catch (const std::exception &why) {
        return weir_job_fail(c, "%s", why.what());
    } catch (...) {
        return weir_job_fail(c, "an exception that is no std::exception");
    }
#else
    return handle(f, job);
#endif
}

} /* namespace detail */

WEIR_CPP_END
#endif
