// index.js - the package: jobs, workers, the event bus. clients/README.md is the guide.
export { ReturnJob, Weir, WeirError } from './weir.js';
export { run, worker } from './worker.js';
export { observe } from './observe.js';
export { Bus, BusError, Message } from './bus.js';
