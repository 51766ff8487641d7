import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A member of the cell's group with a thread of its own: an old client's poll returns only when the group is settled. */
final class Member extends Listener implements AutoCloseable {
    final List<String> read = new CopyOnWriteArrayList<>();
    final AtomicInteger assigned = new AtomicInteger();
    final AtomicInteger revoked = new AtomicInteger();
    volatile int owned;
    volatile Set<Integer> partitions = Collections.emptySet();
    volatile String problem;
    private volatile boolean isClosing;
    private final KafkaConsumer<String, String> consumer;
    private final Thread thread;

    Member(Cell cell, String... pairs) {
        consumer = cell.consumer(pairs);
        consumer.subscribe(Arrays.asList(cell.topic), this);
        thread = new Thread(this::run);
        thread.start();
    }

    private void run() {
        try {
            while (!isClosing) {
                Version.poll(consumer, 50).forEach(record -> read.add(record.partition() + "/" + record.offset()));
                partitions = indexes(consumer.assignment());
                owned = partitions.size();
            }
            for (TopicPartition each : consumer.assignment()) consumer.position(each); // without one there is nothing to commit
            consumer.commitSync(); // so that the group is still there to be looked at
        } catch (Throwable error) {
            problem = error.toString();
        } finally {
            consumer.close();
        }
    }

    private static Set<Integer> indexes(Set<TopicPartition> partitions) {
        Set<Integer> indexes = new TreeSet<>();
        for (TopicPartition partition : partitions) indexes.add(partition.partition());
        return indexes;
    }

    @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        assigned.addAndGet(partitions.size());
    }

    @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        revoked.addAndGet(partitions.size());
    }

    @Override public void close() throws InterruptedException {
        isClosing = true;
        thread.join(Cell.PATIENCE_MS);
        Cell.expect(problem == null, problem);
    }
}
