import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './app.css';
import { App } from './app';
import { begin } from './store';

render(<App />, document.getElementById('app') as HTMLElement);
void begin();
