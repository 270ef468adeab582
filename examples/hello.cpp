// hello.cpp - queue a mail, have it sent.
// c++ -std=c++17 hello.cpp $(pkg-config --cflags --libs weir)
#include <iostream>
#include <weir/weir.hpp>

int main() try {
    weir::Queue queue("sqlite:jobs.db");
    queue.process("mail", weir::PoolOptions().threads(4), [](weir::Job &job) {
        std::cout << "sending " << job.data() << "\n";
        return R"({"sent":true})"; // if it goes wrong: throw std::runtime_error("smtp: ...")
    });
    auto added = queue.add(weir::Spec("mail").data(R"({"to":"ann@example.org"})")
                               .priority(WEIR_PRIORITY_HIGH).attempts(3));
    weir::Job job = queue.wait(added.id, std::chrono::seconds(10));
    std::cout << "mail is " << job.state_name() << ": " << job.result() << "\n";
} catch (const weir::Error &why) {
    return why.complain();
}
