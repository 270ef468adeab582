/* bus.hpp - Bus: messages to addresses; Message, Consumer, Service. */
#ifndef WEIR_CPP_BUS_HPP
#define WEIR_CPP_BUS_HPP

#include <functional>
#include <map>

#include "weir/cpp/queue.hpp"

WEIR_CPP_BEGIN

/* What a message carries: JSON and headers. */
class Content {
public:
    Content(std::string_view json) : body_(detail::text(json)) {}
    Content(const std::string &json) : Content(std::string_view(json)) {}
    Content(const char *json) : Content(std::string_view(json)) {}
    Content() = default;                                /* null */

    Content &header(std::string_view name, std::string_view value)
    {
        headers_.emplace_back(detail::text(name), detail::text(value));
        return *this;
    }
    Content &local(bool yes = true) { local_ = yes; return *this; }

    /* Calls use(const weir_content *). */
    template <class F>
    auto with(F use) const
    {
        std::vector<weir_header> raw;
        for (const auto &h : headers_)
            raw.push_back({h.first.c_str(), h.second.c_str()});
        weir_content c = {};
        c.body = detail::or_null(body_);
        c.body_len = body_.size();
        c.headers = raw.data();
        c.n_headers = raw.size();
        c.local = local_;
        return use(&c);
    }

private:
    std::string                                      body_;
    std::vector<std::pair<std::string, std::string>> headers_;
    bool                                             local_ = false;
};

/* A message; move-only. A message is valid until its handler returns: keep() makes a copy that
 * stays. It must be gone before its bus. */
class Message {
public:
    Message() = default;
    Message(weir_message *m, bool owned) : m_(m), owned_(owned) {}
    Message(Message &&other) noexcept
        : m_(std::exchange(other.m_, nullptr)), owned_(other.owned_)
    {
    }
    Message &operator=(Message &&other) noexcept
    {
        std::swap(m_, other.m_);
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~Message()
    {
        if (owned_)
            weir_message_free(m_);
    }

    explicit operator bool() const noexcept { return m_; }
    weir_message *c() const noexcept { return m_; }
    std::string address() const { return weir_message_address(m_); }
    std::string body() const
    {
        size_t      len = 0;
        const char *s = weir_message_body(m_, &len);
        return detail::copy(s, len);
    }
    std::optional<std::string> header(std::string_view name) const
    {
        const char *s = weir_message_header(m_, detail::text(name).c_str());
        return s ? std::optional<std::string>(s) : std::nullopt;
    }
    bool sent() const { return weir_message_sent(m_); }
    bool expects_reply() const { return weir_message_expects_reply(m_); }
    Message keep() { return Message(weir_message_keep(m_), true); }

    outcome<void> reply(const Content &content)
    {
        weir_error err = {};
        return detail::give(content.with([&](const weir_content *raw) {
            return weir_message_reply(m_, raw, &err);
        }), err);
    }
    outcome<void> fail(int code, std::string_view text)
    {
        weir_error err = {};
        return detail::give(weir_message_fail(m_, code, detail::text(text).c_str(), &err), err);
    }
    outcome<Message> request(const Content &content, milliseconds timeout = {})
    {
        weir_error err = {};
        weir_reply reply = {};
        weir_code  rc = content.with([&](const weir_content *raw) {
            return weir_message_request(m_, raw, timeout.count(), &reply, &err);
        });
        return of_reply(rc, err, reply);
    }

    static outcome<Message> of_reply(weir_code rc, const weir_error &err, const weir_reply &reply)
    {
        if (rc)
            return detail::failed<Message>(Error(err, reply.failure, reply.code));
        return outcome<Message>(Message(reply.message, true));
    }

private:
    weir_message *m_ = nullptr;
    bool          owned_ = false;
};

/* What a consumer or an action does: it may reply, or answer the reply's body as JSON. */
using MessageHandler = std::function<void(Message &)>;

namespace detail {

inline void respond(Message &m, std::string_view json)
{
    if (m.expects_reply())
        Content(json).with([&](const weir_content *c) {
            return weir_message_reply(m.c(), c, nullptr);
        });
}
template <class T>
void respond(Message &m, result<T> r)
{
    if (!r)
        weir_message_fail(m.c(), -1, r.error().what(), nullptr);
    else if constexpr (!std::is_void_v<T>)
        respond(m, std::move(r.value()));
}

template <class F>
void deliver(F &f, Message &m)
{
    if constexpr (std::is_void_v<std::invoke_result_t<F &, Message &>>)
        f(m);
    else
        respond(m, f(m));
}

/* An exception is the failure of a request; of another message, nobody waits for it. */
template <class F>
void deliver_safely(F &f, Message &m) noexcept
{
#ifdef __cpp_exceptions
    try {
        deliver(f, m);
    } catch (const std::exception &why) {
        weir_message_fail(m.c(), -1, why.what(), nullptr);
    } catch (...) {
        weir_message_fail(m.c(), -1, "an exception that is no std::exception", nullptr);
    }
#else
    deliver(f, m);
#endif
}

struct CloseBus {
    void operator()(weir_bus *b) const { weir_bus_close(b); }
};

/* A bus, closed with its last consumer; its queue stays as long. */
struct OpenBus {
    std::shared_ptr<Open>                open;
    std::unique_ptr<weir_bus, CloseBus>  bus;
};

} /* namespace detail */

/* Receives messages until it is destroyed. */
class Consumer {
public:
    Consumer(std::shared_ptr<detail::OpenBus> bus, std::shared_ptr<void> fn, weir_consumer *c)
        : bus_(std::move(bus)), fn_(std::move(fn)), consumer_(c)
    {
    }
    uint64_t missed() const { return weir_consumer_missed(consumer_.get()); }

private:
    struct Close {
        void operator()(weir_consumer *c) const { weir_consumer_close(c); }
    };
    std::shared_ptr<detail::OpenBus>      bus_;         /* destroyed last */
    std::shared_ptr<void>                 fn_;
    std::unique_ptr<weir_consumer, Close> consumer_;
};

/* An event bus; move-only. It is closed when it and its consumers are gone. */
class Bus {
public:
    /* The bus of all processes that have it open on the store of `queue`. */
    static outcome<Bus> open(Queue &queue)
    {
        weir_bus  *b = nullptr;
        weir_error err = {};
        weir_code  rc = weir_bus_open(&b, queue.c(), &err);
        return detail::give(rc, err, [&] { return Bus(queue.open_, b); });
    }
    /* A bus of this process. */
    static outcome<Bus> create()
    {
        weir_bus  *b = nullptr;
        weir_error err = {};
        weir_code  rc = weir_bus_create(&b, &err);
        return detail::give(rc, err, [&] { return Bus(nullptr, b); });
    }
#ifndef WEIR_NO_EXCEPTIONS
    explicit Bus(Queue &queue) : Bus(open(queue)) {}
#endif
    Bus(Bus &&) noexcept = default;
    Bus &operator=(Bus &&) noexcept = default;

    weir_bus *c() const { return open_->bus.get(); }

    /* Every consumer of the address receives it. */
    outcome<void> publish(std::string_view address, const Content &content = {})
    {
        weir_error err = {};
        return detail::give(content.with([&](const weir_content *raw) {
            return weir_bus_publish(c(), detail::text(address).c_str(), raw, &err);
        }), err);
    }
    /* One consumer receives it. */
    outcome<void> send(std::string_view address, const Content &content = {})
    {
        weir_error err = {};
        return detail::give(content.with([&](const weir_content *raw) {
            return weir_bus_send(c(), detail::text(address).c_str(), raw, &err);
        }), err);
    }
    /* Send, and wait for the reply; Error::failure() says why there is none. */
    outcome<Message> request(std::string_view address, const Content &content = {},
                             milliseconds timeout = {})
    {
        weir_error err = {};
        weir_reply reply = {};
        weir_code  rc = content.with([&](const weir_content *raw) {
            return weir_bus_request(c(), detail::text(address).c_str(), raw, timeout.count(),
                                    &reply, &err);
        });
        return Message::of_reply(rc, err, reply);
    }
    /* Call an action of a service with arguments (a JSON object): its result. */
    outcome<Message> call(std::string_view service, std::string_view action,
                          std::string_view args = "{}", milliseconds timeout = {})
    {
        weir_error  err = {};
        weir_reply  reply = {};
        std::string json = detail::text(args);
        weir_code   rc = weir_service_call(c(), detail::text(service).c_str(),
                                           detail::text(action).c_str(), json.c_str(),
                                           timeout.count(), &reply, &err);
        return Message::of_reply(rc, err, reply);
    }

    /* Have handler(Message &) called on a thread of its own. What it answers (JSON) is the reply,
     * an exception the failure. */
    template <class F>
    outcome<Consumer> consume(std::string_view address, F handler)
    {
        struct Handler : std::enable_shared_from_this<Handler> {
            explicit Handler(F f) : fn(std::move(f)) {}
            F fn;
        };
        auto                 held = std::make_shared<Handler>(std::move(handler));
        std::string          where = detail::text(address);
        weir_consumer_config config = {};
        config.address = where.c_str();
        config.ctx = held.get();
        config.handler = [](weir_message *raw, void *ctx) noexcept {
            std::shared_ptr<Handler> running = static_cast<Handler *>(ctx)->shared_from_this();
            Message                  m(raw, false);
            detail::deliver_safely(running->fn, m);
        };
        weir_error     err = {};
        weir_consumer *consumer = nullptr;
        weir_code      rc = weir_bus_consume(&consumer, c(), &config, &err);
        return detail::give(rc, err, [&] { return Consumer(open_, held, consumer); });
    }

    /* One entry of a service: an action and what it does. */
    struct Action {
        template <class F>
        Action(std::string_view action, F handler)
            : name(action), run([f = std::move(handler)](Message &m) mutable {
                  detail::deliver(f, m);
              })
        {
        }
        std::string    name;
        MessageHandler run;
    };
    /* Publish a service until the Consumer is destroyed. */
    outcome<Consumer> service(std::string_view name, const std::vector<Action> &actions)
    {
        auto table = std::make_shared<std::map<std::string, MessageHandler>>();
        for (const Action &action : actions)
            (*table)[action.name] = action.run;
        return consume(name, [table](Message &m) {
            std::string action = m.header("action").value_or("");
            auto        found = table->find(action);
            if (found != table->end())
                found->second(m);
            else
                weir_message_fail(m.c(), 500, action.empty() ? "action not specified"
                                  : ("Invalid action: " + action).c_str(), nullptr);
        });
    }

private:
    Bus(std::shared_ptr<detail::Open> open, weir_bus *b)
        : open_(std::make_shared<detail::OpenBus>())
    {
        open_->open = std::move(open);
        open_->bus.reset(b);
    }
    std::shared_ptr<detail::OpenBus> open_;
};

WEIR_CPP_END
#endif
