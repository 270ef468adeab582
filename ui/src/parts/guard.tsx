// guard.tsx - a view that throws says so, instead of leaving a blank page.
import type { ComponentChildren, JSX } from 'preact';
import { useErrorBoundary } from 'preact/hooks';

export function Guard({ children }: { children: ComponentChildren }): JSX.Element {
    const [error, again] = useErrorBoundary((e: unknown) => console.warn(e)) as [unknown, () => void];
    return !error ? <>{children}</> : (
        <section class="trouble panel wrong" role="alert">
            <h1>This view cannot be shown</h1>
            <p class="bad">{error instanceof Error ? `${error.name}: ${error.message}` : String(error)}</p>
            <p>This is an error of the page, not of your jobs. The other views work. Please report it with the address
                and the text above.</p>
            <p><button type="button" class="main" onClick={again}>Try again</button>{' '}
                <a href={location.pathname}>Without parameters</a> · <a href="/">Overview</a></p>
        </section>
    );
}
