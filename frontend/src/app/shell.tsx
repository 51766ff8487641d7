// The frame around every page: where you are, for whom, and whether what you see is live.
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";
import { live } from "../api/live/client";
import { useLiveStatus } from "../api/live/hooks";
import { chooseTenant, currentTenant, forgetTenantData, useSignOut } from "../api/session";
import type { Session } from "../api/types";
import { Button } from "../components/controls";
import {
  BookIcon,
  ChevronIcon,
  ClusterIcon,
  GroupsIcon,
  KeyIcon,
  MoonIcon,
  SunIcon,
  SystemIcon,
  TopicsIcon,
} from "../components/icons";
import { Link, navigate, usePath } from "../components/router";
import { SegmentedControl } from "../components/segmented";
import { toastError } from "../components/toast";
import { Menu } from "./menu";
import { type Theme, useTheme } from "./theme";

const PAGES: { href: string; label: string; Icon: () => ReactNode; isForOperators?: boolean }[] = [
  { href: "/topics", label: "Topics", Icon: TopicsIcon },
  { href: "/groups", label: "Groups", Icon: GroupsIcon },
  { href: "/keys", label: "API keys", Icon: KeyIcon },
  { href: "/cluster", label: "Cluster", Icon: ClusterIcon, isForOperators: true },
];

export function Shell({ session, children }: { session: Session; children: ReactNode }) {
  useEffect(() => {
    live.start();
    return live.stop;
  }, []);
  return (
    <div className="shell">
      <a className="skip-link" href="#main">
        Skip to content
      </a>
      <header className="topbar">
        <Link href="/topics" className="brand" aria-label="Highwater, to the topics">
          <img src={`${import.meta.env.BASE_URL}mark.svg`} width="26" height="26" alt="" />
          <span>Highwater</span>
        </Link>
        <TenantSwitcher session={session} />
        <span className="topbar-space" />
        <LiveDot />
        <UserMenu session={session} />
      </header>
      <Navigation isOperator={session.user.is_operator} />
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function Navigation({ isOperator }: { isOperator: boolean }) {
  const path = usePath();
  return (
    <nav className="sidenav" aria-label="Pages">
      {PAGES.filter((page) => isOperator || !page.isForOperators).map(({ href, label, Icon }) => (
        <Link key={href} href={href} aria-current={path.startsWith(href) ? "page" : undefined}>
          <Icon />
          {label}
        </Link>
      ))}
      <a href="/api/v1/docs" className="sidenav-docs">
        <BookIcon />
        REST API
      </a>
    </nav>
  );
}

function TenantSwitcher({ session }: { session: Session }) {
  const cache = useQueryClient();
  const current = currentTenant(session);
  const change = (tenantId: string): void => {
    chooseTenant(tenantId);
    forgetTenantData(cache);
    live.restart();
    navigate("/topics");
  };
  if (session.tenants.length < 2) return <span className="tenant-name">{current?.name ?? "No tenant"}</span>;
  return (
    <label className="tenant-switch">
      <span className="visually-hidden">Tenant</span>
      <select className="select" value={current?.id} onChange={(event) => change(event.target.value)}>
        {session.tenants.map((tenant) => (
          <option key={tenant.id} value={tenant.id}>
            {tenant.name}
          </option>
        ))}
      </select>
    </label>
  );
}

const LIVE_TEXT = {
  idle: ["quiet", "Offline"],
  asking: ["warn", "Connecting"],
  opening: ["warn", "Connecting"],
  greeting: ["warn", "Connecting"],
  live: ["ok", "Live"],
  waiting: ["warn", "Reconnecting"],
  stopped: ["bad", "Not live"],
} as const;

function LiveDot() {
  const { phase, latencyMs, stopReason } = useLiveStatus();
  const [tone, text] = LIVE_TEXT[phase];
  const title = latencyMs === null ? (stopReason ?? text) : `Live connection, ${latencyMs} ms there and back`;
  return (
    <span className={`live-dot live-${tone}`} role="status" title={title}>
      <span aria-hidden="true" />
      {text}
    </span>
  );
}

const THEMES: { value: Theme; label: string }[] = [
  { value: "system", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

function UserMenu({ session }: { session: Session }) {
  const [theme, setTheme] = useTheme();
  const signOut = useSignOut();
  const name = session.user.name || session.user.email;
  return (
    <>
      <ThemeButton theme={theme} setTheme={setTheme} />
      <Menu
        label={`Account of ${name}`}
        button={
          <>
            <span className="avatar" aria-hidden="true">
              {name.slice(0, 1).toUpperCase()}
            </span>
            <ChevronIcon />
          </>
        }
      >
        {() => (
          <>
            <div className="menu-who">
              <strong>{name}</strong>
              <span className="muted">{session.user.email}</span>
              {session.user.is_operator && <span className="muted">Operator</span>}
            </div>
            <div className="menu-row">
              <span>Theme</span>
              <SegmentedControl label="Theme" options={THEMES} value={theme} onChange={setTheme} />
            </div>
            <Button disabled={signOut.isPending} onClick={() => signOut.mutate(undefined, { onError: toastError })}>
              Sign out
            </Button>
          </>
        )}
      </Menu>
    </>
  );
}

const NEXT_THEME: Record<Theme, Theme> = { system: "dark", dark: "light", light: "system" };
const THEME_ICON = { system: SystemIcon, dark: MoonIcon, light: SunIcon };

function ThemeButton({ theme, setTheme }: { theme: Theme; setTheme: (theme: Theme) => void }) {
  const Icon = THEME_ICON[theme];
  const next = NEXT_THEME[theme];
  return (
    <button
      type="button"
      className="icon-button theme-button"
      aria-label={`Theme: ${theme}. Change to ${next}`}
      title={`Theme: ${theme}`}
      onClick={() => setTheme(next)}
    >
      <Icon />
    </button>
  );
}
