// make-table.mjs - writes the table that test_cron compares with: what croner, which shares no code
// with weir, says is the next firing. The table is kept beside this file, so that the test needs no
// network; this script only shows where it comes from, and makes it again:
//
//     cd test/cron && npm install && node make-table.mjs >table.txt && rm -r node_modules
//
// A line is EXPRESSION|ZONE|AFTER|NEXT, in UTC, to the second. All years are past, so a new tzdata
// does not change it. The two grammars do not agree on: a/n (croner refuses it), steps of weekdays
// (weir counts from Monday), W at the border of a month (weir crosses it), L-n. And on one thing
// around clock changes: times of a fixed hour that the clock shows twice or skips, if there are
// several in that hour. Such pairs are left out by their kind, never by what weir answers.
import { Cron } from 'croner';

const ZONES = ['UTC', 'Africa/Cairo', 'Africa/Casablanca', 'America/Havana', 'America/Los_Angeles',
  'America/New_York', 'America/Santiago', 'America/Sao_Paulo', 'America/St_Johns', 'Asia/Gaza',
  'Asia/Kathmandu', 'Asia/Kolkata', 'Asia/Tehran', 'Asia/Tokyo', 'Australia/Lord_Howe',
  'Australia/Sydney', 'Europe/Berlin', 'Europe/Dublin', 'Europe/London', 'Pacific/Apia',
  'Pacific/Auckland', 'Pacific/Chatham'];
const FIRST = Date.UTC(2016, 0, 1), END = Date.UTC(2026, 0, 1), DAY = 86400000;

// One time of a day, or every hour: asked at any moment, clock changes included.
const STEADY = ['30 6 * * 1', '0 0 * * *', '30 2 * * *', '15 1 * * *', '30 0 * * *', '59 23 * * *',
  '0 * * * *', '*/15 * * * *', '7,37 * * * *', '45 3 1 * *', '0 12 L * *', '0 0 LW * *',
  '0 8 15W * *', '30 9 9W * *', '0 0 * * 5L', '0 0 * * 5#3', '0 0 * * 1#5', '0 0 13 * 5',
  '0 4 29 2 *', '15 10 31 * *', '0 3 * JAN,JUN,DEC *', '20 22 1-7 * MON', '5 5 * * SUN',
  '0 1 * MAR-MAY TUE-THU', '10 2 25-31 * 7', '*/7 * * * *', '0 0 1 1 *', '0 0 L 2 *', '30 2 * 3 0',
  '30 1 * 10-11 0', '0 */1 * * *', '33 17 10,20,L * *', '*/20 30 4 * * *', '15,45 * * * * *'];
// Several times of restricted hours: only far from clock changes.
const OTHER = ['*/15 9-17 * * 1-5', '0 */2 * * *', '0 0,6,12,18 * * *', '*/10 2 * * *', '5-59/9 1-3 * * *',
  '0 8-18/2 1,15 * *', '0,30 0 * * 0-6', '1-5 22,23 L * *', '*/5 0-4 * * 6,7', '0 3,15 * */2 *',
  '10-20/5 7 * * 2#2', '0 9,21 10W * *', '12 */6 * 2,4,6 *', '*/30 5 6 * 7 *',
  '0 2,3 * * *', '40 1,2 * * 0', '0 0,12 1 */3 *', '55 4-6 28-31 * *'];

let seed = 20260329;
const random = n => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;

const shift = (zone, at) => {           // of the local time, in ms
  const part = {};
  for (const p of new Intl.DateTimeFormat('en-US', { timeZone: zone, hourCycle: 'h23',
    year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric',
    second: 'numeric' }).formatToParts(at)) part[p.type] = +p.value;
  return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) - at;
};

// The moments at which the clock of a zone changes, found to the second.
const changes = zone => {
  const found = [];
  for (let at = FIRST; at < END - DAY; at += DAY) {
    if (shift(zone, at) === shift(zone, at + DAY)) continue;
    let low = at, high = at + DAY;
    while (high - low > 1000) {
      const middle = low + Math.floor((high - low) / 2000) * 1000;
      if (shift(zone, middle) === shift(zone, at)) low = middle; else high = middle;
    }
    found.push(high);
  }
  return found;
};

const stamp = at => new Date(at).toISOString().slice(0, 19) + 'Z';
const lines = new Set();
const ask = (text, zone, after, steady) => {
  const next = new Cron(text, { timezone: zone, domAndDow: true }).nextRun(new Date(after))?.getTime();
  if (!next || next >= END) return;
  if (!steady) {
    for (let at = after - DAY; at < next + 2 * DAY; at += DAY)
      if (shift(zone, at) !== shift(zone, after)) return;
  }
  lines.add(`${text}|${zone}|${stamp(after)}|${stamp(next)}`);
};

for (const zone of ZONES) {
  const anytime = () => FIRST + random((END - FIRST) / 1000) * 1000;
  for (const text of STEADY) for (let i = 0; i < 2; i++) ask(text, zone, anytime(), true);
  for (const text of OTHER) for (let i = 0; i < 2; i++) ask(text, zone, anytime(), false);
  const all = changes(zone);
  for (let i = 0; i < 4 && all.length; i++) {
    const change = all[random(all.length)];
    for (const text of STEADY.filter((_, k) => k % 3 === i % 3 || k < 7))
      ask(text, zone, change - 3 * 3600000 + random(6 * 3600) * 1000, true);
  }
}
process.stdout.write([...lines].join('\n') + '\n');
