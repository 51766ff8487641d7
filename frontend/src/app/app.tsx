// Routes. Signed out: the sign-in page at every address, so that a link survives signing in.
import { useEffect } from "react";
import { useSession } from "../api/session";
import { Link, navigate, usePath } from "../components/router";
import { Toasts } from "../components/toast";
import { ClusterPage } from "../features/cluster/cluster-page";
import { GroupPage } from "../features/groups/group-page";
import { GroupsPage } from "../features/groups/groups-page";
import { KeysPage } from "../features/keys/keys-page";
import { SignInPage } from "../features/session/sign-in-page";
import { TopicPage, type TopicTab } from "../features/topic/topic-page";
import { TopicsPage } from "../features/topics/topics-page";
import { Shell } from "./shell";

export function App() {
  const session = useSession();
  return (
    <>
      {session.isPending ? (
        <div className="splash" role="status" aria-label="Loading Highwater" />
      ) : session.data ? (
        <Shell session={session.data}>
          <CurrentPage isOperator={session.data.user.is_operator} />
        </Shell>
      ) : (
        <SignInPage unreachable={session.error} />
      )}
      <Toasts />
    </>
  );
}

const GROUP_ROUTE = /^\/groups\/([^/]+)\/?$/;
const TOPIC_ROUTE = /^\/topics\/([^/]+)(?:\/(messages|partitions|groups|config))?\/?$/;

function CurrentPage({ isOperator }: { isOperator: boolean }) {
  const path = usePath();
  useEffect(() => {
    if (path === "/") navigate("/topics", "replace");
  }, [path]);
  if (path === "/" || path === "/topics" || path === "/topics/") return <TopicsPage />;
  if (path === "/keys") return <KeysPage />;
  if (path === "/cluster" && isOperator) return <ClusterPage />;
  if (path === "/groups" || path === "/groups/") return <GroupsPage />;
  const group = GROUP_ROUTE.exec(path);
  if (group?.[1]) return <GroupPage key={group[1]} name={decodeURIComponent(group[1])} />;
  const topic = TOPIC_ROUTE.exec(path);
  if (!topic?.[1]) return <NotFound />;
  const name = decodeURIComponent(topic[1]);
  return <TopicPage key={name} name={name} tab={(topic[2] ?? "messages") as TopicTab} />;
}

function NotFound() {
  useEffect(() => {
    document.title = "Not found · Highwater";
  }, []);
  return (
    <div className="empty-page">
      <h1>There is no page here</h1>
      <p className="muted">The address may be mistyped, or what it named has been deleted.</p>
      <Link className="button button-primary" href="/topics">
        To the topics
      </Link>
    </div>
  );
}
