# weir.rb - a formula for Homebrew on Linux. The checksum is that of the release tarball, from
# weir-VERSION.tar.xz.sha256: put it in before the formula goes into a tap.
class Weir < Formula
  desc "Job queue with a server, a command-line and a web page"
  homepage "https://example.org/weir"
  url "https://example.org/weir/weir-0.2.0.tar.xz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "curl"
  depends_on "hiredis"
  depends_on "jansson"
  depends_on "libevent"
  depends_on :linux
  depends_on "openssl@3"
  depends_on "sqlite"
  depends_on "wslay"

  def install
    args = %w[-Dtests=false -Dexamples=false -Dbench=false -Dwerror=false -Db_ndebug=true]
    system "meson", "setup", "build", *args, *std_meson_args
    system "meson", "compile", "-C", "build"
    system "meson", "install", "-C", "build"
  end

  service do
    run [opt_bin/"weir", "serve"]
    keep_alive true
    environment_variables WEIR_DATA: var/"weir"
  end

  test do
    ENV["WEIR_STORE"] = "sqlite:#{testpath}/jobs.db"
    assert_equal "1\n", shell_output("#{bin}/weir add mail '{}'")
    assert_match "inactive", shell_output("#{bin}/weir get 1")
  end
end
