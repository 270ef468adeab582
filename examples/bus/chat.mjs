// chat.mjs NAME - a chat over publish: each line that you type goes to everybody in the room.
// It finds the server in WEIR_STORE; start as many as you like, on any machine.
import { createInterface } from 'node:readline';
import { Bus } from '../../clients/js/bus.js';

const ROOM = 'chat.room', [name = 'somebody'] = process.argv.slice(2);
const bus = new Bus();
const say = (text) => bus.publish(ROOM, text, { headers: { from: name } });

await bus.consume(ROOM, ({ body, headers }) => {
    if (headers.from !== name)
        console.log(`${headers.from}: ${body}`);
});
await say('(comes in)');
for await (const line of createInterface({ input: process.stdin }))
    await say(line);
await say('(leaves)');
bus.close();
