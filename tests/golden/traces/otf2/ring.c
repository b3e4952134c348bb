#include <mpi.h>
#include <unistd.h>
int main(int argc,char**argv){ MPI_Init(&argc,&argv); int r,n; MPI_Comm_rank(MPI_COMM_WORLD,&r); MPI_Comm_size(MPI_COMM_WORLD,&n);
 static char a[70000],b[70000]; double x=r,y; MPI_Comm half; MPI_Comm_split(MPI_COMM_WORLD,r%2,r,&half);
 int cnt[16],dis[16],rc[16]; for(int i=0;i<n;i++){cnt[i]=(i+1)*10;dis[i]=i*200;rc[i]=(r+1)*10;}
 for(int i=0;i<2;i++){ usleep(1000*(r+1));
  if(r%2==0){ MPI_Send(a,60000,MPI_CHAR,r+1,i,MPI_COMM_WORLD); MPI_Recv(a,200,MPI_CHAR,MPI_ANY_SOURCE,MPI_ANY_TAG,MPI_COMM_WORLD,MPI_STATUS_IGNORE);}
  else { MPI_Recv(b,70000,MPI_CHAR,r-1,i,MPI_COMM_WORLD,MPI_STATUS_IGNORE); MPI_Ssend(a,100,MPI_CHAR,r-1,5,MPI_COMM_WORLD);}
  MPI_Allreduce(&x,&y,1,MPI_DOUBLE,MPI_SUM,MPI_COMM_WORLD); MPI_Allreduce(&x,&y,2,MPI_FLOAT,MPI_SUM,half);
  MPI_Bcast(b,1000,MPI_CHAR,1,MPI_COMM_WORLD); MPI_Alltoall(b,100,MPI_CHAR,a,100,MPI_CHAR,MPI_COMM_WORLD);
  MPI_Gather(b,30,MPI_CHAR,a,30,MPI_CHAR,2,MPI_COMM_WORLD); MPI_Reduce(&x,&y,1,MPI_DOUBLE,MPI_SUM,3,MPI_COMM_WORLD);
  MPI_Scatterv(b,cnt,dis,MPI_CHAR,a,cnt[r],MPI_CHAR,1,MPI_COMM_WORLD);
  MPI_Allgatherv(b,cnt[r],MPI_CHAR,a,cnt,dis,MPI_CHAR,MPI_COMM_WORLD); MPI_Barrier(MPI_COMM_WORLD); }
 MPI_Finalize(); }
