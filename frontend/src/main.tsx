import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/http";
import { sessionKeys } from "./api/session";
import { App } from "./app/app";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/ui.css";
import "./styles/shell.css";
import "./features/session/session.css";
import "./features/topics/topics.css";
import "./features/topic/topic.css";
import "./features/topic/tail.css";
import "./features/keys/keys.css";
import "./features/groups/groups.css";
import "./features/cluster/cluster.css";

const isWorthRetrying = (failures: number, error: unknown): boolean =>
  failures < 2 && (!(error instanceof ApiError) || error.isServerAway);

// A session that ended elsewhere shows at the first refusal: asking who is signed in brings up the sign-in page.
const onRefusal = (error: unknown): void => {
  if (error instanceof ApiError && error.status === 401) {
    void queryClient.invalidateQueries({ queryKey: sessionKeys.session });
  }
};

const queryClient: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: onRefusal }),
  mutationCache: new MutationCache({ onError: onRefusal }),
  defaultOptions: { queries: { retry: isWorthRetrying, retryDelay: 800, staleTime: 1_000 } },
});

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
