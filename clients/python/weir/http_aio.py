"""HTTP/1.1 over asyncio streams, as far as a weir server speaks it: lengths and chunks."""
import asyncio
from typing import AsyncIterator, Dict, List, Optional, Tuple

from .protocol import Address, Encoded

MAX_LINE = 1024 * 1024          # bytes of a line: of a head, or of an event


class Broken(OSError):
    """The connection ended, or what came is not HTTP."""


class Connection:
    """One connection: a request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.reusable = True

    @classmethod
    async def open(cls, address: Address) -> "Connection":
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=address.tls,
                                                       limit=MAX_LINE)
        return cls(reader, writer)

    def close(self) -> None:
        self._writer.close()

    async def send(self, address: Address, method: str, sent: Encoded) -> None:
        headers = dict(sent.headers, Host=address.host_header)
        if sent.body is not None or method != "GET":
            headers["Content-Length"] = str(len(sent.body or b""))
        head = ["%s %s HTTP/1.1" % (method, sent.path)]
        head += ["%s: %s" % header for header in headers.items()]
        self._writer.write("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + (sent.body or b""))
        await self._writer.drain()

    async def _line(self) -> bytes:
        try:
            line = await self._reader.readline()
        except ValueError as why:
            raise Broken("a line of the server is too long") from why
        if not line.endswith(b"\n"):
            raise Broken("the server closed the connection")
        return line.rstrip(b"\r\n")

    async def head(self) -> Tuple[int, Dict[str, str]]:
        """The status and the headers of the answer."""
        parts = (await self._line()).split(None, 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
            raise Broken("the answer is not HTTP")
        headers: Dict[str, str] = {}
        while True:
            line = await self._line()
            if not line:
                return int(parts[1]), headers
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()

    async def blocks(self, headers: Dict[str, str]) -> AsyncIterator[bytes]:
        """The body, as it comes."""
        if "close" in headers.get("connection", "").lower():
            self.reusable = False
        try:
            if headers.get("transfer-encoding", "").lower() == "chunked":
                while True:
                    size = int((await self._line()).split(b";")[0], 16)
                    if not size:
                        while await self._line():
                            pass
                        return
                    yield await self._reader.readexactly(size)
                    await self._line()
            elif "content-length" in headers:
                yield await self._reader.readexactly(int(headers["content-length"]))
            else:
                self.reusable = False
                while True:
                    block = await self._reader.read(65536)
                    if not block:
                        return
                    yield block
        except (asyncio.IncompleteReadError, ValueError) as why:
            raise Broken("the server closed the connection") from why

    async def answer(self) -> Tuple[int, bytes]:
        status, headers = await self.head()
        if status == 204:
            return status, b""
        return status, b"".join([block async for block in self.blocks(headers)])


class Connections:
    """Those to one server, which are kept."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._free: List[Connection] = []
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    async def request(self, method: str, sent: Encoded, seconds: float) -> Tuple[int, bytes]:
        """The answer, within `seconds`. If the caller is cancelled, the connection is closed."""
        return await asyncio.wait_for(self._request(method, sent), seconds)

    async def _request(self, method: str, sent: Encoded) -> Tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:              # those of another loop are of no use in this one
            self._loop, self._free = loop, []
        connection = self._free.pop() if self._free else await Connection.open(self._address)
        try:
            await connection.send(self._address, method, sent)
            answer = await connection.answer()
        except BaseException:
            connection.close()
            raise
        if connection.reusable:
            self._free.append(connection)
        else:
            connection.close()
        return answer

    def close(self) -> None:
        for connection in self._free:
            connection.close()
        self._free = []
