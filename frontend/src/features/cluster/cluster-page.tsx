import { type ReactNode, useEffect, useState } from "react";
import { useCluster, useElectLeaders } from "../../api/cluster";
import { formatCount } from "../../api/int64";
import type { BrokerRow, Cluster, MoveWish } from "../../api/types";
import { Button, Chip, Failure, Skeleton } from "../../components/controls";
import { toastError, toastOk } from "../../components/toast";
import { BalanceDialog } from "./balance-dialog";
import { BrokersTable } from "./brokers-table";
import { MovesCard } from "./moves-card";
import { RemoveBrokerDialog } from "./remove-broker-dialog";
import { TroubleCard } from "./trouble-card";
import { verdictOf } from "./words";

export function ClusterPage() {
  const cluster = useCluster();
  useEffect(() => {
    document.title = "Cluster · Highwater";
  }, []);
  if (cluster.error && !cluster.data) return <Failure error={cluster.error} onRetry={() => void cluster.refetch()} />;
  if (!cluster.data) return <Skeleton rows={8} />;
  return <ClusterContent cluster={cluster.data} atMs={cluster.dataUpdatedAt} isStale={cluster.isError} />;
}

function ClusterContent({ cluster, atMs, isStale }: { cluster: Cluster; atMs: number; isStale: boolean }) {
  const [wish, setWish] = useState<MoveWish | null>(null);
  const [removing, setRemoving] = useState<BrokerRow | null>(null);
  const verdict = verdictOf(cluster);
  return (
    <>
      <div className="page-head cluster-head">
        <h1>Cluster</h1>
        <Chip tone={isStale ? "bad" : verdict.tone}>{isStale ? "No news from the brokers" : verdict.text}</Chip>
        <span className="cluster-head-space" />
        <ElectButton />
        <Button tone="primary" onClick={() => setWish({})}>
          Balance…
        </Button>
      </div>
      <Facts cluster={cluster} />
      <section className="card" aria-label="Brokers">
        <BrokersTable
          brokers={cluster.brokers}
          atMs={atMs}
          onDrain={(broker) => setWish({ leaving: [broker.id] })}
          onRemove={setRemoving}
        />
      </section>
      {cluster.moves.length > 0 && <MovesCard moves={cluster.moves} count={cluster.partitions.moving} />}
      <TroubleCard cluster={cluster} />
      {wish && <BalanceDialog brokers={cluster.brokers} initial={wish} onClose={() => setWish(null)} />}
      {removing && <RemoveBrokerDialog broker={removing} onClose={() => setRemoving(null)} />}
    </>
  );
}

function ElectButton() {
  const elect = useElectLeaders();
  const run = (): void =>
    elect.mutate(undefined, {
      onError: toastError,
      onSuccess: ({ moved_count }) =>
        toastOk(moved_count ? `${moved_count} partitions have a new leader.` : "Every partition has its first leader."),
    });
  return (
    <Button
      onClick={run}
      disabled={elect.isPending}
      title="Give every partition back to the first of its replicas, where that one is in sync"
    >
      Elect preferred leaders
    </Button>
  );
}

function Facts({ cluster }: { cluster: Cluster }) {
  const { quorum, partitions } = cluster;
  const up = cluster.brokers.filter((broker) => broker.status === "up").length;
  return (
    <dl className="facts cluster-facts">
      <Fact label="Brokers up" isBad={up < cluster.brokers.length}>
        {up} of {cluster.brokers.length}
      </Fact>
      <Fact label="Controller" isBad={quorum.leader === null} title={`Metadata offset ${quorum.metadata_offset}`}>
        {quorum.leader === null ? "none" : `broker ${quorum.leader}`}
        <small className="muted"> epoch {quorum.epoch}</small>
      </Fact>
      <Fact label="Voters" title="They elect the controller and keep the metadata">
        {quorum.voters.join(", ") || "–"}
      </Fact>
      <Fact label="Partitions">{formatCount(partitions.all)}</Fact>
      <Fact label="Leaderless" isBad={partitions.leaderless > 0}>
        {partitions.leaderless}
      </Fact>
      <Fact label="Under min ISR" isBad={partitions.under_min_isr > 0}>
        {partitions.under_min_isr}
      </Fact>
      <Fact label="Under-replicated" isBad={partitions.under_replicated > 0}>
        {partitions.under_replicated}
      </Fact>
      <Fact
        label="Unclean elections"
        isBad={cluster.unclean_election_count > 0}
        title="Since the cluster began: each may have lost acknowledged records"
      >
        {cluster.unclean_election_count}
      </Fact>
    </dl>
  );
}

interface FactProps {
  label: string;
  isBad?: boolean;
  title?: string;
  children: ReactNode;
}

function Fact({ label, isBad, title, children }: FactProps) {
  return (
    <div title={title} className={isBad ? "fact-bad" : ""} data-fact={label}>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
